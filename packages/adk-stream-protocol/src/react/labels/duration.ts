interface Duration {
  readonly count: number
  readonly unit: 'minute' | 'hour' | 'day'
}

/** Returns a time in the unit in which people say it: up to two hours in minutes, up to two days in hours. */
export function toDuration(minutes: number): Duration {
  if (minutes < 120) return { count: minutes, unit: 'minute' }
  if (minutes < 48 * 60) return { count: Math.round(minutes / 60), unit: 'hour' }
  return { count: Math.round(minutes / (24 * 60)), unit: 'day' }
}

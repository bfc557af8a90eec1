const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** Returns a duration in words, in minutes or hours. */
export function formatDuration(ms: number, locale: string): string {
  const isHours = ms % HOUR_MS === 0
  const unit = isHours ? 'hour' : 'minute'
  const value = isHours ? ms / HOUR_MS : Math.max(1, Math.round(ms / MINUTE_MS))
  return new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'long' }).format(value)
}

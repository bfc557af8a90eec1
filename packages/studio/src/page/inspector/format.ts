import type { InspectorLabels } from './labels.ts'

/** Formats a duration: `85 ms`, `1.24 s`, `2 min 5 s`. */
export function formatMs(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(2)} s`
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`
}

/** Returns the name of a principal for people. Ids of browsers are long and random. */
export function nameOf(id: string, { you }: InspectorLabels, reader: string | undefined): string {
  if (id === reader) return you
  return id.length > 20 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id
}

interface TimeFormat {
  readonly now?: number
  readonly timeStyle?: 'short' | 'medium'
}

/** Formats a time, with its day if it is not today. */
export function formatTime(
  at: number,
  { locale, timeOnDay }: Pick<InspectorLabels, 'locale' | 'timeOnDay'>,
  { now = Date.now(), timeStyle = 'medium' }: TimeFormat = {},
): string {
  const date = new Date(at)
  const time = date.toLocaleTimeString(locale, { timeStyle })
  if (date.toDateString() === new Date(now).toDateString()) return time
  const day = date.toLocaleDateString(locale, { weekday: 'short', month: 'short', day: 'numeric' })
  return timeOnDay(time, day)
}

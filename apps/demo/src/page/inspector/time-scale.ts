/** A period of time. `waiting` periods, in which the chat waits only for people, may be shortened. */
export interface Period {
  readonly from: number
  readonly to: number
  readonly waiting: boolean
}

/** A place where the axis leaves out time. */
interface AxisBreak {
  /** The position, from 0 to 1, and the width of what is left. */
  readonly at: number
  readonly width: number
  /** The time between both sides. */
  readonly ms: number
}

/** Converts times to positions on one axis. */
export interface TimeScale {
  /** Returns the position of a time, from 0 to 1. */
  readonly position: (at: number) => number
  readonly breaks: readonly AxisBreak[]
}

/** Times in which nothing happens, or people are waited for, take at most this part of the time in which something runs. */
const MAX_QUIET = 0.3
const MIN_QUIET_MS = 300

/**
 * Returns an axis over all periods. Work is drawn to scale. Long times without work are shortened, because a wait of hours would
 * otherwise make everything else invisible; the axis marks these places.
 */
export function createTimeScale(periods: readonly Period[]): TimeScale {
  const times = [...new Set(periods.flatMap(({ from, to }) => [from, to]))].toSorted(
    (one, other) => one - other,
  )
  const pieces = times.slice(0, -1).map((from, index) => {
    const to = times[index + 1] ?? from
    const runs = periods.some((period) => !period.waiting && period.from <= from && period.to >= to)
    return { from, to, runs }
  })
  const busy = pieces.reduce((sum, { from, to, runs }) => sum + (runs ? to - from : 0), 0)
  const longest = Math.max(busy * MAX_QUIET, MIN_QUIET_MS)
  const widths = pieces.map(({ from, to, runs }) =>
    runs ? to - from : Math.min(to - from, longest),
  )
  const total = widths.reduce((sum, width) => sum + width, 0) || 1
  const starts: number[] = []
  let start = 0
  for (const width of widths) {
    starts.push(start / total)
    start += width
  }
  const position = (at: number): number => {
    const index = pieces.findLastIndex(({ from }) => from <= at)
    const piece = pieces[index]
    if (!piece) return 0
    const part = Math.min(1, (at - piece.from) / (piece.to - piece.from))
    return (starts[index] ?? 0) + (part * (widths[index] ?? 0)) / total
  }
  const breaks = pieces.flatMap(({ from, to, runs }, index): AxisBreak[] => {
    const width = widths[index] ?? 0
    if (runs || width >= to - from) return []
    return [{ at: starts[index] ?? 0, width: width / total, ms: to - from }]
  })
  return { position, breaks }
}

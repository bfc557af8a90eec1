import type { Timeline } from 'adk-stream-protocol/client'

import type { TurnTrace } from './trace.ts'

/** An entry of a timeline. */
export type TimelineEntry = Timeline['entries'][number]

export const LANES = ['model', 'tool', 'wait', 'network'] as const
export type Lane = (typeof LANES)[number]

/** A bar or a moment on the axis. */
export interface Row {
  readonly id: string
  readonly lane: Lane | 'moment'
  readonly from: number
  /** Undefined for a moment. */
  readonly to?: number
  readonly isOpen: boolean
  /** Undefined for the traffic of this page. */
  readonly entry?: TimelineEntry
  readonly trace?: TurnTrace
}

/** A turn with its rows. */
export interface TurnRows {
  readonly messageId: string
  readonly turn: Extract<TimelineEntry, { type: 'turn' }>
  readonly text: string | undefined
  readonly rows: readonly Row[]
  /** The axis of this turn. */
  readonly scale: TimeScale
}

/** The turns of a timeline, oldest first, and the axis of all of them. */
export interface TimelineRows {
  readonly turns: readonly TurnRows[]
  readonly scale: TimeScale
}

/** Arranges a timeline, with the streams of this page, on one axis. `now` ends what is still open. */
export function arrangeTimeline(
  { entries }: Pick<Timeline, 'entries'>,
  streams: readonly TurnTrace[],
  now: number,
): TimelineRows {
  const turns = entries.flatMap((turn): TurnRows[] => {
    if (turn.type !== 'turn') return []
    const { messageId } = turn
    const own = entries.filter((entry) => entry.messageId === messageId)
    const message = own.find((entry) => entry.type === 'message')
    const rows = [
      ...own.flatMap((entry) => toRow(entry, now) ?? []),
      ...streams
        .filter((trace) => trace.messageId === messageId)
        .map((trace): Row => toNetworkRow(trace, now)),
    ]
    const sorted = rows.toSorted((one, other) => one.from - other.from)
    return [{ messageId, turn, text: message?.text, rows: sorted, scale: scaleOf(sorted) }]
  })
  return { turns, scale: scaleOf(turns.flatMap(({ rows }) => rows)) }
}

function scaleOf(rows: readonly Row[]): TimeScale {
  return createTimeScale(
    rows.map(({ lane, from, to = from }) => ({ from, to, waiting: lane === 'wait' })),
  )
}

function toRow(entry: TimelineEntry, now: number): Row | undefined {
  const { id, at: from, endedAt } = entry
  const lane = LANE_OF[entry.type]
  if (lane === undefined) return undefined
  if (lane === 'moment') return { id, lane, from, isOpen: false, entry }
  const to = Math.max(from, endedAt ?? now)
  return { id, lane, from, to, isOpen: endedAt === undefined, entry }
}

const LANE_OF: Readonly<Record<TimelineEntry['type'], Lane | 'moment' | undefined>> = {
  message: undefined,
  turn: undefined,
  model: 'model',
  tool: 'tool',
  'browser-tool': 'tool',
  approval: 'wait',
  error: 'moment',
  interruption: 'moment',
  'hand-over': 'moment',
}

function toNetworkRow(trace: TurnTrace, now: number): Row {
  const { request, startedAt: from, endedAt } = trace
  const to = Math.max(from, endedAt ?? now)
  return {
    id: `network:${request}`,
    lane: 'network',
    from,
    to,
    isOpen: endedAt === undefined,
    trace,
  }
}

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

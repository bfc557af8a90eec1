import type { ApprovalRecord } from 'adk-stream-protocol/client'

/** The states of an approval, in the order in which they can come; the ends are beside each other. */
const STATIONS = ['requested', 'decided', 'started', 'ended'] as const
export type Station = (typeof STATIONS)[number]

/** A stop on an approval's way: what happened there, when, and how long the way to it took. */
export interface Stop {
  readonly station: Station
  /** The record's own word, such as `denied`; nothing where the approval has not come yet. */
  readonly type?: string
  readonly at?: number
  readonly tookMs?: number
  readonly by?: string
}

const STATION_OF: Readonly<Record<string, Station>> = {
  requested: 'requested',
  approved: 'decided',
  denied: 'decided',
  expired: 'decided',
  cancelled: 'decided',
  started: 'started',
  succeeded: 'ended',
  failed: 'ended',
  lost: 'ended',
}

/** Reads the way of an approval off its record: where it has been, and what would come next. */
export function readPath(history: readonly ApprovalRecord[]): Stop[] {
  const records = history.filter(({ type }) => type in STATION_OF)
  const stops: Stop[] = []
  for (const station of STATIONS) {
    const record = records.findLast(({ type }) => STATION_OF[type] === station)
    const before = stops.at(-1)?.at
    if (!record) {
      stops.push({ station })
      continue
    }
    const { type, at } = record
    const tookMs = before === undefined ? undefined : at - before
    const by = 'by' in record && typeof record['by'] === 'string' ? record['by'] : undefined
    stops.push({
      station,
      type,
      at,
      ...(tookMs !== undefined && { tookMs }),
      ...(by !== undefined && { by }),
    })
  }
  // What was not approved goes nowhere from there.
  const decided = stops.find(({ station }) => station === 'decided')?.type
  return decided === undefined || decided === 'approved' ? stops : stops.slice(0, 2)
}

/** How many have agreed where more than one has to. */
export function countVotes(history: readonly ApprovalRecord[]): number {
  return history.filter(({ type }) => type === 'voted').length
}

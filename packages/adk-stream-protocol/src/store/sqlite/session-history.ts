import type { Event, GetSessionConfig } from '@google/adk'
import type { SessionHistory } from '../session-cache.ts'
import { decodeEvent, hasFunctionCalls, withOwnArguments } from '../stored-event.ts'
import type { SessionRow, SessionStatements } from './session-statements.ts'

/** Takes the longest of what was read before that still holds, or begins anew. */
export function continueHistory(
  row: SessionRow,
  known: readonly (SessionHistory | undefined)[],
): SessionHistory {
  return known.reduce<SessionHistory>(
    (longest, history) =>
      history?.epoch === row.epoch && history.seq > longest.seq ? history : longest,
    emptyHistory(row.epoch),
  )
}

// What an event costs in memory beside its text, roughly.
const EVENT_ALLOWANCE = 512

function emptyHistory(epoch: number): SessionHistory {
  return { epoch, seq: 0, size: EVENT_ALLOWANCE, events: [], calls: [] }
}

/** How many events are read at once, and for how long in ms. */
const PAGE_EVENTS = 256
const PAGE_MS = 8

/** Reads more events of a session, for a few ms. Returns whether those were the last ones. */
export function extendHistory(
  history: SessionHistory,
  row: SessionRow,
  statements: SessionStatements,
): boolean {
  const until = performance.now() + PAGE_MS
  while (history.seq < row.seq) {
    const rows = statements.readEvents.rows(row.session, history.seq, PAGE_EVENTS)
    for (const { seq, data } of rows) {
      const event = decodeEvent(data)
      if (hasFunctionCalls(event)) history.calls.push(history.events.length)
      history.events.push(event)
      history.size += data.length + EVENT_ALLOWANCE
      history.seq = seq
      if (performance.now() > until) return history.seq >= row.seq
    }
    // Events need not be numbered without gaps.
    if (rows.length < PAGE_EVENTS) history.seq = row.seq
  }
  return true
}

/** The events for one reader, who may change the list and the arguments of calls. */
export function shareEvents(history: SessionHistory): Event[] {
  const events = history.events.slice()
  for (const index of history.calls) {
    const event = history.events[index]
    if (event !== undefined) events[index] = withOwnArguments(event)
  }
  return events
}

/** Takes the part of a history that ADK's `getSession` is asked for: the most recent ones, then those after a time. */
export function selectEvents(events: Event[], config: GetSessionConfig = {}): Event[] {
  const { numRecentEvents, afterTimestamp } = config
  const recent = numRecentEvents ? events.slice(-numRecentEvents) : events
  if (!afterTimestamp) return recent
  const lastBefore = recent.findLastIndex((event) => event.timestamp < afterTimestamp)
  return recent.slice(lastBefore + 1)
}

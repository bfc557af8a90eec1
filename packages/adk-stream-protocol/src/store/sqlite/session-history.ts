import type { Event, GetSessionConfig } from '@google/adk'
import type { SessionHistory } from '../session-cache.ts'
import { decodeEvent, hasFunctionCalls, withOwnArguments } from '../stored-event.ts'
import type { SessionRow, SessionStatements } from './session-statements.ts'

/** Returns the longest of the known histories that is still valid, or an empty one. */
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

// The approximate memory of an event in addition to its text.
const EVENT_ALLOWANCE = 512

function emptyHistory(epoch: number): SessionHistory {
  return { epoch, seq: 0, size: EVENT_ALLOWANCE, events: [], calls: [] }
}

/** How many events to read at once, and for how many ms. */
const PAGE_EVENTS = 256
const PAGE_MS = 8

/** Reads further events of a session for a few ms. Returns whether the history is complete. */
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
    // The numbers of events may have gaps.
    if (rows.length < PAGE_EVENTS) history.seq = row.seq
  }
  return true
}

/** Returns the events for one reader, which may change the list and the arguments of calls. */
export function shareEvents(history: SessionHistory): Event[] {
  const events = history.events.slice()
  for (const index of history.calls) {
    const event = history.events[index]
    if (event !== undefined) events[index] = withOwnArguments(event)
  }
  return events
}

/** Returns the part of a history that ADK's `getSession` requests: the most recent events, then those after a time. */
export function selectEvents(events: Event[], config: GetSessionConfig = {}): Event[] {
  const { numRecentEvents, afterTimestamp } = config
  const recent = numRecentEvents ? events.slice(-numRecentEvents) : events
  if (!afterTimestamp) return recent
  const lastBefore = recent.findLastIndex((event) => event.timestamp < afterTimestamp)
  return recent.slice(lastBefore + 1)
}

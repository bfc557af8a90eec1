import type { Event, GetSessionConfig } from '@google/adk'
import type { SessionHistory } from './session-cache.ts'
import { decodeEvent, hasFunctionCalls, withOwnArguments } from './stored-event.ts'

/** Returns the longest of the known histories that is still valid at an epoch, or an empty one. */
export function continueHistory(
  epoch: number,
  known: readonly (SessionHistory | undefined)[],
): SessionHistory {
  return known.reduce<SessionHistory>(
    (longest, history) =>
      history?.epoch === epoch && history.seq > longest.seq ? history : longest,
    { epoch, seq: 0, size: EVENT_ALLOWANCE, events: [], calls: [] },
  )
}

// The approximate memory of an event in addition to its text.
const EVENT_ALLOWANCE = 512

/** Adds a stored event to a history. */
export function addToHistory(
  history: SessionHistory,
  { seq, data }: { readonly seq: number; readonly data: string },
): void {
  const event = decodeEvent(data)
  if (hasFunctionCalls(event)) history.calls.push(history.events.length)
  history.events.push(event)
  history.size += data.length + EVENT_ALLOWANCE
  history.seq = seq
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

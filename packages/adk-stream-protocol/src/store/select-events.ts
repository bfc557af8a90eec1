import type { Event, GetSessionConfig } from '@google/adk'

/** Takes the part of a history that ADK's `getSession` is asked for: the most recent ones, then those after a time. */
export function selectEvents(events: Event[], config: GetSessionConfig = {}): Event[] {
  const { numRecentEvents, afterTimestamp } = config
  const recent = numRecentEvents ? events.slice(-numRecentEvents) : events
  if (!afterTimestamp) return recent
  const lastBefore = recent.findLastIndex((event) => event.timestamp < afterTimestamp)
  return recent.slice(lastBefore + 1)
}

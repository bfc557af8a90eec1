import type { Event } from '@google/adk'

/**
 * Returns the position of a conversation: the number of its events and the id of the last one. Events are appended or removed, and a
 * removed event never returns, so a position that is a prefix of a conversation says which events a client has seen.
 */
export function positionOf(events: readonly Event[], count = events.length): string {
  return `${count}.${events[count - 1]?.id ?? ''}`
}

/**
 * Returns the number of events up to a position. Undefined if the conversation does not begin with them: it was rewound or deleted, or
 * its database has lost events.
 */
export function countEventsAt(events: readonly Event[], position: string): number | undefined {
  const count = Number.parseInt(position, 10)
  const isPrefix = count >= 0 && count <= events.length && positionOf(events, count) === position
  return isPrefix ? count : undefined
}

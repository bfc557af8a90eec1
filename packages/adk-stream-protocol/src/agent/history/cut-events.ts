import type { Event } from '@google/adk'

import { readNotes } from './event-notes.ts'
import { splitTurns } from './replay-turn.ts'

/** What a session loses when it is taken back to before a message of the user. */
export interface Cut {
  /** The first event that goes. */
  readonly firstEvent: Event
  readonly removed: readonly Event[]
  /** Events behind the first one that stay: what came of earlier messages in the meantime. */
  readonly kept: readonly Event[]
}

/** Undefined for a message that the session does not hold. */
export function cutEvents(events: readonly Event[], userMessageId: string): Cut | undefined {
  const turns = splitTurns(events)
  const index = turns.findIndex(({ userMessage }) => userMessage.id === userMessageId)
  const firstEvent = turns[index]?.firstEvent
  if (!firstEvent) return undefined
  const start = events.indexOf(firstEvent)
  const earlier = new Set(turns.slice(0, index).flatMap((turn) => turn.events))
  const calls = new Set(events.slice(0, start).flatMap(callIds))
  const removed: Event[] = []
  const kept: Event[] = []
  for (const event of events.slice(start)) {
    const answered = event === firstEvent ? [] : responseIds(event)
    // A call and its response stay or go together.
    const stays = answered.length > 0 ? answered.some((id) => calls.has(id)) : earlier.has(event)
    if (stays) for (const id of callIds(event)) calls.add(id)
    ;(stays ? kept : removed).push(event)
  }
  return { firstEvent, removed, kept }
}

/** Whether an event answers no call that the events do not hold. */
export function respondsToKnownCalls(event: Event, events: readonly Event[]): boolean {
  const calls = new Set(events.flatMap(callIds))
  return responseIds(event).every((id) => calls.has(id))
}

/** The approvals that were asked for in events, with what the events say of their end. */
export function readAsked(events: readonly Event[]): Map<string, string | undefined> {
  const notes = events.map(readNotes)
  const ends = new Map(
    notes.flatMap(({ decided = [] }) =>
      decided.map(({ toolCallId, state }) => [toolCallId, state]),
    ),
  )
  return new Map(
    notes.flatMap(({ asked = [] }) =>
      asked.map(({ approvalId, toolCallId }) => [approvalId, ends.get(toolCallId)]),
    ),
  )
}

function callIds({ content }: Event): string[] {
  return (content?.parts ?? []).flatMap(({ functionCall }) => functionCall?.id ?? [])
}

/** The calls that an event answers. */
export function responseIds({ content }: Event): string[] {
  return (content?.parts ?? []).flatMap(({ functionResponse }) => functionResponse?.id ?? [])
}

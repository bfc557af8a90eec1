import type { Event, AppendEventRequest } from '@google/adk'

import { callIds, responseIds } from '../events/event-calls.ts'
import { findInner, readNotes } from '../events/event-notes.ts'
import { splitTurns } from './stored-turns.ts'

/** The events that a rewind removes from a session. */
export interface Cut {
  /** The first event to remove. */
  readonly firstEvent: Event
  readonly removed: readonly Event[]
  /** Later events to keep, because they belong to earlier messages. */
  readonly kept: readonly Event[]
}

/**
 * Returns the events to remove so that a session ends before a user message. Returns undefined if the session does
 * not contain the message.
 */
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
    const responses = event === firstEvent ? [] : responseIds(event)
    // A call and its response are kept or removed together.
    const isKept = responses.length > 0 ? responses.some((id) => calls.has(id)) : earlier.has(event)
    if (isKept) for (const id of callIds(event)) calls.add(id)
    ;(isKept ? kept : removed).push(event)
  }
  return { firstEvent, removed, kept }
}

/** Returns the approvals that the events request, with their outcomes, if the events contain them. */
export function readRequestedApprovals(events: readonly Event[]): Map<string, string | undefined> {
  const notes = events.flatMap((event) => {
    const inner = findInner(event)
    return inner ? [readNotes(event), readNotes(inner)] : [readNotes(event)]
  })
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

/** A session service that appends a response only if the session still contains the calls. */
export interface ResponseAppender {
  /** Checks and appends in one transaction. Returns false, and stores nothing, if a call was removed. */
  appendResponse(request: AppendEventRequest, calls: readonly string[]): Promise<boolean>
}

/** Whether a session service implements `appendResponse`. */
export function canAppendResponse(service: object): service is ResponseAppender {
  return 'appendResponse' in service && typeof service.appendResponse === 'function'
}

import { isDeepStrictEqual } from 'node:util'

import type { Event, Session } from '@google/adk'

import type { Message } from '../../protocol/message.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import { readUserContent } from '../user-message.ts'
import { isUserMessage, readNotes } from '../events/event-notes.ts'

/** A turn as the ADK session stores it. */
export interface StoredTurn {
  readonly messageId: string
  readonly userMessage: Message
  /** The user event that started the turn. */
  readonly firstEvent: Event
  /** The events of each run: the first run, and one for each time the turn resumed after a pause. */
  readonly runs: Event[][]
  /** The ADK invocations that resumed the turn. Each of them began with a pause, and has no other. */
  readonly resumedBy: Set<string>
  /** All events of the turn, including those that produce no chunks. */
  readonly events: Event[]
}

/** Returns a turn, or undefined if the session does not contain it. */
export function findTurn(events: readonly Event[], messageId: string): StoredTurn | undefined {
  return splitTurns(events).find((turn) => turn.messageId === messageId)
}

/** Whether anything of the reply is stored. */
export function hasReply({ runs }: StoredTurn): boolean {
  return runs.some((events) => events.length > 0)
}

/** Returns the id of the reply to the message with this id and content. A request may arrive after later ones, so the message may be any. */
export function findReplyTo(
  { events }: Pick<Session, 'events'>,
  { id, content }: { readonly id: string; readonly content: unknown },
): string | undefined {
  const message = events.findLast((event) => isUserMessage(event, id))
  if (!message || !isDeepStrictEqual(message.content, content)) return undefined
  return readNotes(message).messageId
}

/** Splits the events of a session into turns, in start order. */
export function splitTurns(events: readonly Event[]): StoredTurn[] {
  const turns = new Map<string, StoredTurn>()
  // Events of two runs may be interleaved: one process replies to a message while another resumes an earlier turn.
  const byInvocation = new Map<string, StoredTurn>()
  let current: StoredTurn | undefined
  for (const event of events) {
    const notes = readNotes(event)
    if (notes.context) continue
    if (startsTurn(event)) {
      // A workflow stores the input of each of its agents as a user message.
      const inner = notes.messageId === undefined && byInvocation.get(event.invocationId)
      if (inner) {
        inner.events.push(event)
        continue
      }
      current = createTurn(event)
      turns.set(current.messageId, current)
      byInvocation.set(event.invocationId, current)
      continue
    }
    const named = notes.messageId === undefined ? undefined : turns.get(notes.messageId)
    if (event.author !== 'user') {
      const turn = named ?? byInvocation.get(event.invocationId) ?? current
      if (turn) addOutput(turn, event)
      continue
    }
    current = named ?? current
    if (!current) continue
    byInvocation.set(event.invocationId, current)
    addResponse(current, event)
  }
  return [...turns.values()]
}

/** Adds an event of the agent to the last run of a turn. */
function addOutput({ runs, events }: StoredTurn, event: Event): void {
  runs.at(-1)?.push(event)
  events.push(event)
}

/** Starts a run of a turn with the response that the turn waited for. */
function addResponse({ runs, events, resumedBy }: StoredTurn, event: Event): void {
  resumedBy.add(event.invocationId)
  // A result from outside produces chunks like any other. A confirmation does not, but its outcome does.
  runs.push(isConfirmation(event) ? [] : [event])
  events.push(event)
}

/** Whether an event responds to a request for approval. */
export function isConfirmation({ content }: Event): boolean {
  return (
    content?.parts?.some(({ functionResponse }) => functionResponse?.name === CONFIRMATION_TOOL) ===
    true
  )
}

// A user event with function responses only continues a turn: it responds to a request of the agent.
function startsTurn(event: Event): boolean {
  if (event.author !== 'user' || !event.content || readNotes(event).input) return false
  return event.content.parts?.some((part) => part.functionResponse === undefined) ?? false
}

// A turn of another program has no notes and uses ADK's ids.
function createTurn(event: Event): StoredTurn {
  const { messageId = event.invocationId, userMessageId = event.id } = readNotes(event)
  const parts = readUserContent(event.content)
  return {
    messageId,
    userMessage: { id: userMessageId, role: 'user', parts },
    firstEvent: event,
    runs: [[]],
    resumedBy: new Set(),
    events: [event],
  }
}

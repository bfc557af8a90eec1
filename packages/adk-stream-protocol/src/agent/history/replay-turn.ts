import type { Event } from '@google/adk'

import type { Chunk } from '../../protocol/chunk.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import type { Message } from '../../protocol/message.ts'
import { readNotes } from './event-notes.ts'
import { ChunkWriter } from '../translate/chunk-writer.ts'
import type { TranslationOptions } from '../translate/translate-event.ts'
import { translateEvent } from '../translate/translate-event.ts'
import type { Translation } from '../translate/translation.ts'
import { beginTranslation } from '../translate/translation.ts'
import { readUserContent } from '../translate/user-content.ts'

/** A turn as the ADK session holds it. */
export interface StoredTurn {
  readonly messageId: string
  readonly userMessage: Message
  /** The user event that began it. */
  readonly firstEvent: Event
  /** The events of each run: the first one, and one for every time it went on after a pause. */
  readonly runs: Event[][]
  /** All of its events, also those that are not told. */
  readonly events: Event[]
}

/** The turns of a session, in the order they began. */
export function splitTurns(events: readonly Event[]): StoredTurn[] {
  const turns = new Map<string, StoredTurn>()
  // Events of two runs may be mixed: one process answers a message while another goes on with an earlier turn.
  const byInvocation = new Map<string, StoredTurn>()
  let current: StoredTurn | undefined
  for (const event of events) {
    const notes = readNotes(event)
    if (notes.context) continue
    if (startsTurn(event)) {
      // A workflow stores the input of each agent in it as a message of the user, which no person wrote.
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
    if (event.author === 'user') {
      current = named ?? current
      if (!current) continue
      byInvocation.set(event.invocationId, current)
      // Results that came from outside are told like any other; a confirmation is told by what it led to.
      current.runs.push(isConfirmation(event) ? [] : [event])
      current.events.push(event)
    } else {
      const turn = named ?? byInvocation.get(event.invocationId) ?? current
      turn?.runs.at(-1)?.push(event)
      turn?.events.push(event)
    }
  }
  return [...turns.values()]
}

/** What a client was told of a turn, and where it paused: indices of the first chunk after each pause. */
export interface ReplayedTurn {
  readonly state: Translation
  readonly chunks: Chunk[]
  readonly pauses: readonly number[]
}

/** Tells a stored turn anew, up to where it stands. */
export function replayTurn(turn: StoredTurn, options: TranslationOptions): ReplayedTurn {
  let state = beginTranslation()
  const chunks: Chunk[] = []
  const pauses: number[] = []
  const pause = (): void => {
    const closing = new ChunkWriter(state)
    closing.closeStep()
    chunks.push(...closing.chunks)
    pauses.push(chunks.length)
    state = closing.state
  }
  for (const [index, events] of turn.runs.entries()) {
    if (index > 0) pause()
    for (const event of errorsLast(events)) {
      // A live run is one, however often it pauses: it had paused where somebody outside had to answer.
      if (pauses.at(-1) !== chunks.length && endsPause(state, event)) pause()
      const [next, written] = translateEvent(state, event, options)
      state = next
      chunks.push(...written)
    }
  }
  return { state, chunks, pauses }
}

/** Whether an event answers what a turn stood still for. What ADK itself stores has no notes: its run did not stand still. */
function endsPause({ calls }: Translation, event: Event): boolean {
  const { messageId, pending = [], handedOver = [], input } = readNotes(event)
  if (messageId === undefined && !input) return false
  const answered = (event.content?.parts ?? []).flatMap(({ functionResponse }) => {
    const id = functionResponse?.id
    return id === undefined || pending.includes(id) ? [] : id
  })
  return [...answered, ...handedOver, ...(input ? [input.toolCallId] : [])].some((id) => {
    const state = calls.get(id)?.state
    return state === 'asked' || state === 'waiting'
  })
}

/** The turn as a client has it that saw it pause: with its last step closed. */
export function closeAtPause({ state, chunks, pauses }: ReplayedTurn): ReplayedTurn {
  const pause = new ChunkWriter(state)
  pause.closeStep()
  const closed = [...chunks, ...pause.chunks]
  return { state: pause.state, chunks: closed, pauses: [...pauses, closed.length] }
}

/** Where a client goes on that saw this approval asked, or this call made: behind the pause after it, or behind the last one. */
export function findPause(
  { chunks, pauses }: Pick<ReplayedTurn, 'chunks' | 'pauses'>,
  seen?: string,
): number {
  // A call that was handed to the client is shown twice: who answers it has seen the second time.
  const asked =
    seen === undefined ? -1 : chunks.findLastIndex((chunk) => findQuestionId(chunk) === seen)
  const after = asked < 0 ? undefined : pauses.find((pause) => pause > asked)
  return after ?? chunks.length
}

/** The places behind pauses, with what a client has seen that goes on from there. */
export function markPauses(turn: Pick<ReplayedTurn, 'chunks' | 'pauses'>): Map<number, string[]> {
  const marks = new Map<number, string[]>()
  for (const chunk of turn.chunks) {
    const seen = findQuestionId(chunk)
    if (seen === undefined) continue
    const pause = findPause(turn, seen)
    marks.set(pause, [...(marks.get(pause) ?? []), seen])
  }
  return marks
}

/** What somebody outside may have to answer: an approval, or a call. */
function findQuestionId(chunk: Chunk): string | undefined {
  if (chunk.type === 'tool-approval-request') return chunk.approvalId
  return chunk.type === 'tool-input-available' ? chunk.toolCallId : undefined
}

function isConfirmation({ content }: Event): boolean {
  return (
    content?.parts?.some(({ functionResponse }) => functionResponse?.name === CONFIRMATION_TOOL) ===
    true
  )
}

// A user event of nothing but function responses goes on with a turn: it answers what the agent asked.
function startsTurn(event: Event): boolean {
  if (event.author !== 'user' || !event.content || readNotes(event).input) return false
  return event.content.parts?.some((part) => part.functionResponse === undefined) ?? false
}

// A turn that another program began has no notes, and takes ADK's own ids.
function createTurn(event: Event): StoredTurn {
  const { messageId = event.invocationId, userMessageId = event.id } = readNotes(event)
  const parts = readUserContent(event.content)
  return {
    messageId,
    userMessage: { id: userMessageId, role: 'user', parts },
    firstEvent: event,
    runs: [[]],
    events: [event],
  }
}

// What was streamed before a failure is stored after it, but was told first.
function errorsLast(events: readonly Event[]): Event[] {
  return [...events.filter((event) => !isError(event)), ...events.filter(isError)]
}

function isError({ errorCode, content }: Event): boolean {
  return errorCode !== undefined && !content
}

/**
 * What was told of a turn, for a client that reads it anew. A question that has been decided is left out, and a denied call ends
 * as an error: a client that did not decide it itself would otherwise keep a question without an answer, which AI SDK 6 counts as
 * an invalid message.
 */
export function toReplay(
  chunks: readonly Chunk[],
  isDecided: (toolCallId: string) => boolean,
): Chunk[] {
  return chunks.flatMap((chunk): Chunk[] => {
    if (chunk.type === 'tool-approval-request') return isDecided(chunk.toolCallId) ? [] : [chunk]
    if (chunk.type !== 'tool-output-denied') return [chunk]
    return [
      {
        type: 'tool-output-error',
        toolCallId: chunk.toolCallId,
        errorText: 'Denied. It did not run.',
      },
    ]
  })
}

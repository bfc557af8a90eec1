import type { Event } from '@google/adk'

import type { StoredTurn } from './stored-turns.ts'
import { findTurn, hasReply, splitTurns } from './stored-turns.ts'
import type { Chunk } from '../../protocol/chunk.ts'
import type { TurnError } from '../../protocol/message.ts'
import { readQuestion } from '../../protocol/chunk.ts'
import { foldChunks } from '../../protocol/fold-chunks.ts'
import type { Message } from '../../protocol/message.ts'
import { ChunkWriter } from '../translate/chunk-writer.ts'
import type { TranslationOptions } from '../translate/translate-event.ts'
import { translateEvent, finishTranslation } from '../translate/translate-event.ts'
import type { Call, Translation } from '../translate/translation.ts'
import { isAskingDuringCall } from '../translate/translation.ts'
import { findInner, readInnerResults, readNotes } from '../events/event-notes.ts'
import { countEventsAt, positionOf } from './position.ts'

/** The chunks of a turn and its pauses. A pause is the index of the first chunk after it. */
export interface ReplayedTurn {
  readonly state: Translation
  readonly chunks: Chunk[]
  readonly pauses: readonly number[]
  /** The error that the turn ended with, if it may continue. Otherwise it is part of the state. */
  readonly lastError?: TurnError | undefined
}

/**
 * Replays a stored turn up to its last event. By default, the chunks contain no session state. Calls `onEvent` before each event is
 * translated, with the index of its first chunk.
 */
export function replayTurn(
  turn: StoredTurn,
  options: TranslationOptions = { exposeState: () => false },
  onEvent?: (event: Event, index: number) => void,
): ReplayedTurn {
  const writer = new ChunkWriter()
  const { state, chunks } = writer
  const pauses: number[] = []
  const pause = (): void => {
    closePause(writer)
    pauses.push(chunks.length)
  }
  for (const [index, events] of turn.runs.entries()) {
    if (index > 0) {
      pause()
      if (state.stop === 'stopped') writer.update({ stop: 'continued' })
    }
    for (const event of errorsLast(events)) {
      // A live run is a single run, however often it pauses. It paused wherever it waited for a response.
      const isResumed = turn.resumedBy.has(event.invocationId)
      const isPause = endsQuestion(state, event) || (!isResumed && endsPause(state, event))
      if (isPause && pauses.at(-1) !== chunks.length) pause()
      onEvent?.(event, chunks.length)
      translateEvent(writer, event, options)
    }
  }
  return { state, chunks, pauses }
}

/**
 * Whether an event responds to something that the turn was waiting for. Events of ADK itself have no notes, because
 * its run did not pause.
 */
function endsPause({ calls }: Translation, event: Event): boolean {
  const { messageId, input, paused = [] } = readNotes(event)
  if (messageId === undefined && !input) return false
  // The agent that a call runs continues when a call inside was decided, and may wait again.
  if (paused.some(({ toolCallId }) => isPausedOrAsked(calls.get(toolCallId)))) return true
  const shown = findInner(event) ?? event
  const { pending = [], handedOver = [] } = readNotes(shown)
  const respondedIds = (shown.content?.parts ?? []).flatMap(({ functionResponse }) => {
    const id = functionResponse?.id
    return id === undefined || pending.includes(id) ? [] : id
  })
  return [...respondedIds, ...handedOver, ...(input ? [input.toolCallId] : [])].some((id) => {
    const state = calls.get(id)?.state
    return state === 'asked' || state === 'waiting'
  })
}

/** Whether an event ends a question that a call asked while it ran. The stream ended at the question, although the run continued. */
function endsQuestion({ calls }: Translation, event: Event): boolean {
  return readInnerResults(event).some((id) => isAskingDuringCall(calls.get(id)))
}

function isPausedOrAsked(call: Call | undefined): boolean {
  return call?.state === 'paused' || call?.state === 'asked'
}

/** Returns the turn as a client has it that saw the pause: with the last step closed. */
export function closeAtPause({ state, chunks, pauses }: ReplayedTurn): ReplayedTurn {
  const { error: lastError } = state
  const pause = new ChunkWriter(state)
  closePause(pause)
  const closed = [...chunks, ...pause.chunks]
  return { state: pause.state, chunks: closed, pauses: [...pauses, closed.length], lastError }
}

/** Closes the last step. A run that failed after it had asked a person continues with the decision, so its error does not last. */
function closePause(writer: ChunkWriter): void {
  writer.closeStep()
  if (writer.state.error) writer.update({ error: undefined, wasIncomplete: true })
}

/**
 * Returns the index of the chunk at which a client resumes that has seen this approval or call: after the next pause,
 * or at the end.
 */
export function findResumeIndex(
  { chunks, pauses }: Pick<ReplayedTurn, 'chunks' | 'pauses'>,
  seen?: string,
): number {
  // A call that was handed over to the client is shown twice. A client that responds has seen the second one.
  const asked =
    seen === undefined ? -1 : chunks.findLastIndex((chunk) => findQuestionId(chunk) === seen)
  const after = asked < 0 ? undefined : pauses.find((pause) => pause > asked)
  return after ?? chunks.length
}

/** Returns the index after each pause, with the approvals and calls that a client has seen when it resumes there. */
export function markPauses(turn: Pick<ReplayedTurn, 'chunks' | 'pauses'>): Map<number, string[]> {
  const marks = new Map<number, string[]>()
  for (const chunk of turn.chunks) {
    const seen = findQuestionId(chunk)
    if (seen === undefined) continue
    const pause = findResumeIndex(turn, seen)
    marks.set(pause, [...(marks.get(pause) ?? []), seen])
  }
  return marks
}

/** Returns the id of the approval or call that may need a response. */
function findQuestionId(chunk: Chunk): string | undefined {
  if (chunk.type === 'tool-approval-request') return chunk.approvalId
  if (chunk.type === 'tool-input-available') return chunk.toolCallId
  return readQuestion(chunk)?.approvalId
}

// The partial text before a failure is stored after the failure, but was streamed before it.
function errorsLast(events: readonly Event[]): Event[] {
  return [...events.filter((event) => !isError(event)), ...events.filter(isError)]
}

function isError({ errorCode, content }: Event): boolean {
  return errorCode !== undefined && !content
}

/**
 * Returns the chunks of a turn for a client that reads it from the start. Leaves out decided approval requests and
 * turns a denial into an error. A client that did not decide itself would otherwise keep a request without a
 * response, which AI SDK 6 treats as an invalid message.
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

export interface ReadConversationOptions extends TranslationOptions {
  /** The message that is still being streamed. It is left out, because a client reads it by resuming. */
  readonly unfinished: string | undefined
  /** Whether calls of a message are running although it is not being streamed. Default: none are. */
  readonly hasRunningCalls?: (messageId: string) => boolean
  /** The position up to which the client has the conversation. Default: it has nothing. */
  readonly after?: string | undefined
}

/** A conversation as messages. */
export interface Conversation {
  readonly messages: Message[]
  /** The position up to which `messages` are complete: before the message that is being streamed. */
  readonly position: string
  /** The position after which `messages` have changed. Undefined if they are the whole conversation. */
  readonly after?: string
}

/**
 * Returns the conversation of an ADK session as messages. It uses the same translation as streaming, and folds the
 * chunks (CV1). PO1: after a position, translates only the messages that may have changed since.
 */
export function readConversation(
  events: readonly Event[],
  options: ReadConversationOptions,
): Conversation {
  const { after, unfinished, hasRunningCalls } = options
  const turns = splitTurns(events)
  const streamed = turns.find(({ messageId }) => messageId === unfinished)
  const position = positionOf(events, streamed && events.indexOf(streamed.firstEvent))
  const count = after === undefined ? undefined : countEventsAt(events, after)
  if (after === undefined || count === undefined)
    return { messages: turns.flatMap((turn) => readTurn(turn, options)), position }
  const added = new Set(events.slice(count))
  const hasAdded = ({ events: own, firstEvent }: StoredTurn): boolean =>
    added.has(own.at(-1) ?? firstEvent)
  const mayDiffer = (turn: StoredTurn): boolean =>
    hasAdded(turn) || hasOpenCalls(turn) || hasRunningCalls?.(turn.messageId) === true
  // A late event may add the reply to an earlier message. The client learns its place from the messages after it.
  const firstNew = turns.findIndex(
    (turn) =>
      hasAdded(turn) && hasReply(turn) && turn.runs.flat().every((event) => added.has(event)),
  )
  const changed = turns.filter(
    (turn, index) => (firstNew >= 0 && index >= firstNew) || mayDiffer(turn),
  )
  return { messages: changed.flatMap((turn) => readTurn(turn, options)), position, after }
}

/**
 * Returns the position of a conversation, for a client that had it up to `before` and has read one message since. Undefined if the client
 * does not have all of it: something else was stored too, or the conversation does not begin with `before`.
 */
export function findPositionAfter(
  events: readonly Event[],
  { before, messageId }: { readonly before: string; readonly messageId: string },
): string | undefined {
  const count = countEventsAt(events, before)
  const read = new Set(findTurn(events, messageId)?.events)
  const isRead = count !== undefined && events.slice(count).every((event) => read.has(event))
  return isRead ? positionOf(events) : undefined
}

/** Returns the end of a stored turn. */
export function finishStored(state: Translation, hasRunningCalls: boolean): Chunk[] {
  const end = state.stop === 'stopped' ? 'stopped' : 'completed'
  return finishTranslation(state, hasRunningCalls ? 'left' : end)
}

/** Whether a call of a turn has no result. Its approval may be decided, or the call may run, without an event that says so. */
function hasOpenCalls({ events }: StoredTurn): boolean {
  const open = new Set<string>()
  for (const event of events) {
    const { paused = [], askedDuringCalls = [], input } = readNotes(event)
    const questions = [...paused.flatMap(({ asked }) => asked), ...askedDuringCalls]
    for (const { toolCallId } of questions) open.add(toolCallId)
    if (input) open.delete(input.toolCallId)
    noteResults(open, event)
    const inner = findInner(event)
    if (inner) noteResults(open, inner)
  }
  return open.size > 0
}

/** Adds the calls of an event to the open ones, and removes those that have their result in it. */
function noteResults(open: Set<string>, event: Event): void {
  const { pending = [] } = readNotes(event)
  for (const { functionCall, functionResponse } of event.content?.parts ?? []) {
    if (functionCall?.id !== undefined) open.add(functionCall.id)
    const id = functionResponse?.id
    if (id !== undefined && !pending.includes(id)) open.delete(id)
  }
}

function readTurn(turn: StoredTurn, options: ReadConversationOptions): Message[] {
  const { userMessage, messageId } = turn
  if (!hasReply(turn) || messageId === options.unfinished) return [userMessage]
  const { state, chunks } = replayTurn(turn, options)
  const ending = finishStored(state, options.hasRunningCalls?.(messageId) === true)
  return [userMessage, foldChunks(messageId, [...chunks, ...ending])]
}

import type { Event } from '@google/adk'

import type { Chunk } from '../protocol/chunk.ts'
import { foldChunks } from '../protocol/fold-chunks.ts'
import type { Message } from '../protocol/message.ts'
import { finishTranslation } from './finish-translation.ts'
import type { TranslationOptions } from './translate-event.ts'
import { translateEvent } from './translate-event.ts'
import { beginTranslation } from './translation.ts'
import { isRepair, readMarks } from './turn-marks.ts'
import { readUserContent } from './user-content.ts'

export interface ReadConversationOptions extends TranslationOptions {
  /** The message that is still being streamed; it is left out, because a client gets it whole by resuming. */
  readonly unfinished: string | undefined
}

/** The conversation of an ADK session as messages: the same translation that streamed it, folded (CV1). */
export function readConversation(
  events: readonly Event[],
  options: ReadConversationOptions,
): Message[] {
  return splitTurns(events).flatMap((turn) => readTurn(turn, options))
}

interface StoredTurn {
  readonly userMessage: Message
  readonly messageId: string
  readonly events: Event[]
}

function splitTurns(events: readonly Event[]): StoredTurn[] {
  const turns: StoredTurn[] = []
  for (const event of events) {
    const marks = readMarks(event)
    if (marks) {
      const { userMessageId: id, messageId } = marks
      const userMessage: Message = { id, role: 'user', parts: readUserContent(event.content) }
      turns.push({ userMessage, messageId, events: [] })
    } else if (!isRepair(event)) turns.at(-1)?.events.push(event)
  }
  return turns
}

function readTurn(turn: StoredTurn, options: ReadConversationOptions): Message[] {
  const { userMessage, messageId, events } = turn
  if (events.length === 0 || messageId === options.unfinished) return [userMessage]
  const chunks: Chunk[] = []
  let state = beginTranslation()
  for (const event of errorsLast(events)) {
    const [next, told] = translateEvent(state, event, options)
    state = next
    chunks.push(...told)
  }
  const stopped = events.some((event) => event.interrupted)
  chunks.push(...finishTranslation(state, stopped ? 'stopped' : 'completed'))
  return [userMessage, foldChunks(messageId, chunks)]
}

// What was streamed before a failure is stored after it, but was told first.
function errorsLast(events: readonly Event[]): Event[] {
  return [...events.filter((event) => !isError(event)), ...events.filter(isError)]
}

function isError({ errorCode, content }: Event): boolean {
  return errorCode !== undefined && !content
}

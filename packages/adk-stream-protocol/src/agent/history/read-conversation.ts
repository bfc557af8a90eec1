import type { Event } from '@google/adk'

import { foldChunks } from '../../protocol/fold-chunks.ts'
import type { Message } from '../../protocol/message.ts'
import { finishTranslation } from '../translate/finish-translation.ts'
import type { StoredTurn } from './replay-turn.ts'
import { splitTurns, replayTurn } from './replay-turn.ts'
import type { TranslationOptions } from '../translate/translate-event.ts'

export interface ReadConversationOptions extends TranslationOptions {
  /** The message that is still being streamed. It is left out, because a client reads it by resuming. */
  readonly unfinished: string | undefined
  /** Whether calls of a message are running although it is not being streamed. Default: none are. */
  readonly runs?: (messageId: string) => boolean
}

/**
 * Returns the conversation of an ADK session as messages. It uses the same translation as streaming, and folds the
 * chunks (CV1).
 */
export function readConversation(
  events: readonly Event[],
  options: ReadConversationOptions,
): Message[] {
  return splitTurns(events).flatMap((turn) => readTurn(turn, options))
}

function readTurn(turn: StoredTurn, options: ReadConversationOptions): Message[] {
  const { userMessage, messageId, runs } = turn
  const events = runs.flat()
  if (events.length === 0 || messageId === options.unfinished) return [userMessage]
  const { state, chunks } = replayTurn(turn, options)
  const stopped = events.some((event) => event.interrupted)
  const end = stopped ? 'stopped' : 'completed'
  const ending = finishTranslation(state, options.runs?.(messageId) === true ? 'left' : end)
  return [userMessage, foldChunks(messageId, [...chunks, ...ending])]
}

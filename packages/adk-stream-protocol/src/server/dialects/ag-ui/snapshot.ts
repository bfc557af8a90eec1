import { replayTurn } from '../../../agent/history/replay-turn.ts'
import { hasReply, splitTurns } from '../../../agent/history/stored-turns.ts'
import { finishTranslation } from '../../../agent/translate/translate-event.ts'
import type { Message } from '../../../protocol/message.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import type { Backend } from '../../chats/backend.ts'
import { toAppChat } from '../../chats/backend.ts'
import type { RunEvent, RunMessage, UserContent } from './events.ts'
import { FoldedMessages } from './fold-events.ts'
import type { RunWriter } from './run-writer.ts'

/** A stored conversation, as events that restore it. */
export interface Snapshot {
  readonly isEmpty: boolean
  readonly events: readonly RunEvent[]
}

interface SnapshotOptions {
  readonly exposeState: (key: string) => boolean
  /** The message that is still being streamed. It is left out, because the run streams it. */
  readonly unfinished?: string | undefined
}

/**
 * Reads the stored conversation of a chat. The writer writes the stored chunks first, so that it continues where they end, and gives the
 * same messages as it gave in the stream (AG1382).
 */
export async function readSnapshot(
  backend: Backend,
  chat: ChatRef,
  writer: RunWriter,
  { exposeState, unfinished }: SnapshotOptions,
): Promise<Snapshot> {
  const session = await backend.sessions.get(toAppChat(backend, chat))
  const folded = new FoldedMessages()
  for (const turn of splitTurns(session?.events ?? [])) {
    const { userMessage, messageId } = turn
    folded.add(toUserMessage(userMessage))
    if (!hasReply(turn) || messageId === unfinished) continue
    const { state, chunks } = replayTurn(turn, { exposeState })
    const end = finishTranslation(state, state.stop === 'stopped' ? 'stopped' : 'left')
    for (const chunk of [{ type: 'start', messageId } as const, ...chunks, ...end])
      for (const event of writer.write(chunk)) folded.apply(event)
  }
  writer.startRun()
  const shown = Object.entries(session?.state ?? {}).filter(([key]) => exposeState(key))
  const state = Object.fromEntries(shown)
  return {
    isEmpty: folded.list.length === 0,
    events: [
      ...(shown.length > 0 ? [{ type: 'STATE_SNAPSHOT', snapshot: state } as const] : []),
      { type: 'MESSAGES_SNAPSHOT', messages: folded.list },
    ],
  }
}

function toUserMessage({ id, parts }: Message): RunMessage {
  const content = parts.flatMap((part): UserContent[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    if (part.type !== 'file') return []
    const { mediaType: mimeType, url } = part
    const value = url.slice(url.indexOf(',') + 1)
    return [{ type: toKind(mimeType), source: { type: 'data', value, mimeType } }]
  })
  const [only] = content
  const isText = content.length === 1 && only?.type === 'text'
  return { id, role: 'user', content: isText ? only.text : content }
}

const KINDS = ['image', 'audio', 'video'] as const

function toKind(mimeType: string): 'image' | 'audio' | 'video' | 'document' {
  return KINDS.find((kind) => mimeType.startsWith(`${kind}/`)) ?? 'document'
}

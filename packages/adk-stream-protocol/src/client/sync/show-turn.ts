import type { Message, MessagePart } from '../../protocol/message.ts'
import { foldChunk } from '../../protocol/fold-chunks.ts'
import type { ServerTurn } from '../transports/chat-observers.ts'
import type { MessageView } from './chat-messages.ts'
import { addUserMessage, putMessage } from './chat-messages.ts'

/**
 * Anything with messages: a `Chat`, or `{ messages: [] }`.
 *
 * @inline
 */
export interface MessageTarget {
  messages: MessageView[]
}

/** Writes a turn that the chat did not request into its messages, as its chunks arrive. */
export async function showTurn(chat: MessageTarget, turn: ServerTurn): Promise<void> {
  const { messageId, userMessage, continues, chunks } = turn
  if (userMessage) showUserMessage(chat, userMessage)
  const known = chat.messages.find(({ id }) => id === messageId)
  const message: Message =
    continues && known
      ? // The chat's messages come from the bridge.
        (structuredClone(known) as unknown as Message)
      : { id: messageId, role: 'assistant', parts: [] }
  let isScheduled = false
  const write = (): void => {
    isScheduled = false
    keepLocalDecision(chat, message)
    chat.messages = putMessage(chat.messages, structuredClone(message))
  }
  for await (const chunk of chunks) {
    foldChunk(message, chunk)
    if (isScheduled) continue
    // A replayed turn arrives at once. One write for all of its chunks keeps the page from showing it grow again.
    isScheduled = true
    setTimeout(write, 0)
  }
  if (message.parts.length > 0) write()
}

/** Adds a user message to the chat, see `addUserMessage`. */
export function showUserMessage(chat: MessageTarget, message: MessageView, replyId?: string): void {
  const next = addUserMessage(chat.messages, message, replyId)
  if (next !== chat.messages) chat.messages = next
}

/** Keeps a decision that the server has not confirmed: only the chat has it. */
function keepLocalDecision(chat: MessageTarget, message: Message): void {
  const shown = chat.messages.find(({ id }) => id === message.id)?.parts ?? []
  for (const [index, part] of message.parts.entries()) {
    if (!('toolCallId' in part) || part.state !== 'approval-requested') continue
    const decided = shown.find(
      ({ state, approval }) => state === 'approval-responded' && approval?.id === part.approval.id,
    )
    if (decided) message.parts[index] = structuredClone(decided) as unknown as MessagePart
  }
}

import type { Message, MessagePart } from '../../protocol/message.ts'
import { foldChunk } from '../../protocol/fold-chunks.ts'
import type { MessageView } from './response-states.ts'
import type { ServerTurn } from '../transports/chat-observer.ts'

interface Shown {
  messages: MessageView[]
}

/** Puts a turn that the chat did not ask for into its messages, as it comes. */
export async function showTurn(chat: Shown, turn: ServerTurn): Promise<void> {
  const { messageId, userMessage, continues, chunks } = turn
  if (userMessage) addMessage(chat, userMessage)
  const known = chat.messages.find(({ id }) => id === messageId)
  const message: Message =
    continues && known
      ? // The chat's messages are those of the bridge.
        (structuredClone(known) as unknown as Message)
      : { id: messageId, role: 'assistant', parts: [] }
  let isDue = false
  const write = (): void => {
    isDue = false
    keepLocalDecision(chat, message)
    putMessage(chat, structuredClone(message))
  }
  for await (const chunk of chunks) {
    foldChunk(message, chunk)
    if (isDue) continue
    // A turn that is told from its start comes at once: the page shows it grown, and not growing anew.
    isDue = true
    setTimeout(write, 0)
  }
  if (message.parts.length > 0) write()
}

/** A click that the server has not answered yet is the chat's alone. */
function keepLocalDecision(chat: Shown, message: Message): void {
  const shown = chat.messages.find(({ id }) => id === message.id)?.parts ?? []
  for (const [index, part] of message.parts.entries()) {
    if (!('toolCallId' in part) || part.state !== 'approval-requested') continue
    const clicked = shown.find(
      ({ state, approval }) => state === 'approval-responded' && approval?.id === part.approval.id,
    )
    if (clicked) message.parts[index] = structuredClone(clicked) as unknown as MessagePart
  }
}

/** Adds what a person said: before its answer, or at the end. What the chat has of it is replaced: it may have been heard in part. */
export function addMessage(chat: Shown, message: MessageView, answerId?: string): void {
  const { messages } = chat
  const known = messages.find(({ id }) => id === message.id)
  if (known) {
    if (JSON.stringify(known.parts) !== JSON.stringify(message.parts)) putMessage(chat, message)
    return
  }
  const place = messages.findIndex(({ id }) => id === answerId)
  chat.messages = messages.toSpliced(place < 0 ? messages.length : place, 0, message)
}

/** Puts a message into the place of the one of its id, or at the end. */
export function putMessage(chat: Shown, message: MessageView): void {
  const index = chat.messages.findLastIndex(({ id }) => id === message.id)
  chat.messages = index < 0 ? [...chat.messages, message] : chat.messages.with(index, message)
}

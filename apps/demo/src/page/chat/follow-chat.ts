import { readUIMessageStream } from 'ai'

import { readCalls } from './approval.ts'
import { loadChat } from './chat-api.ts'
import { type Conversation, isBusy } from './conversation.ts'
import type { Message } from './message.ts'

/** Shows the answer that is being written, from its first chunk on; tells whether there was one. */
export async function resume(conversation: Conversation): Promise<boolean> {
  const { chat } = conversation
  const before = chat.messages.at(-1)
  await chat.resumeStream()
  if (chat.status !== 'ready' || chat.messages.at(-1) !== before) return true
  // It ended after the server said that it was running: there was nothing to resume, and the server has it whole.
  await reread(conversation)
  return false
}

/** Catches up with what happened elsewhere: in another tab, in an inbox, by the server's own clock. */
export async function catchUp(conversation: Conversation): Promise<void> {
  const { chat } = conversation
  const shown = chat.messages
  // What the reader is answering right now is newer than what the server has.
  if (isBusy(chat) || isAnswering(shown.at(-1))) return
  const saved = await loadChat(chat.id)
  if (!saved || isBusy(chat) || chat.messages !== shown) return
  if (!saved.running) {
    chat.messages = saved.messages
    return
  }
  const unfinished = shown.findLast(
    ({ role, id }) => role === 'assistant' && saved.messages.every((message) => message.id !== id),
  )
  if (unfinished && unfinished !== shown.at(-1)) return followEarlier(conversation)
  // The server leaves out what it is writing; the reader goes on seeing it as it was.
  chat.messages = unfinished ? [...saved.messages, unfinished] : saved.messages
  // What began while this was being read was not followed.
  if (await resume(conversation)) await catchUp(conversation)
}

function isAnswering(last: Message | undefined): boolean {
  return last !== undefined && readCalls(last).some(({ state }) => state === 'approval-responded')
}

/** Shows what the server has, unless the chat has gone on meanwhile. */
async function reread({ chat }: Conversation): Promise<void> {
  const shown = chat.messages
  const saved = await loadChat(chat.id)
  if (!saved || saved.running || isBusy(chat) || chat.messages !== shown) return
  chat.messages = saved.messages
}

/** An answer above the last one goes on: the chat itself would show it at the end. */
async function followEarlier(conversation: Conversation): Promise<void> {
  const { chat, transport } = conversation
  const stream = await transport.reconnectToStream({ chatId: chat.id })
  if (stream) {
    for await (const message of readUIMessageStream<Message>({ stream })) {
      chat.messages = chat.messages.map((other) => (other.id === message.id ? message : other))
    }
  }
  await reread(conversation)
}

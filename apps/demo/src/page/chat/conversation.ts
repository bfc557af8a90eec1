import { Chat } from '@ai-sdk/react'
import { type ChatTransport, DefaultChatTransport } from 'ai'

import { isBrowserTool } from '../tools/browser-tools.ts'
import { Answers } from './answers.ts'
import type { SavedChat } from './chat-api.ts'
import { type Message, Metadata } from './message.ts'

/** The stock chat with what the page adds to it. */
export interface Conversation {
  readonly chat: Chat<Message>
  readonly answers: Answers
  readonly transport: ChatTransport<Message>
}

/**
 * A chat of our own: the one that useChat makes (3.0.323) hides from itself that the transport replays a resumed answer from its
 * first chunk, and would show the beginning twice after a lost connection.
 */
export function openConversation(id: string, saved: SavedChat): Conversation {
  const answers = new Answers(isBrowserTool)
  const transport = createTransport(answers)
  const chat = new Chat<Message>({
    id,
    messages: saved.messages,
    transport,
    messageMetadataSchema: Metadata,
    sendAutomaticallyWhen: answers.areWaiting,
  })
  return { chat, answers, transport }
}

/** Whether the page itself is writing or reading in the chat. */
export function isBusy({ status }: Chat<Message>): boolean {
  return status === 'submitted' || status === 'streaming'
}

/** The stock transport. The server has the history, so only the newest message travels. */
function createTransport(answers: Answers): ChatTransport<Message> {
  return new DefaultChatTransport<Message>({
    api: '/stream',
    // The server writes hints for the reader, who may have chosen another language than the browser's.
    headers: () => ({ 'accept-language': document.documentElement.lang }),
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => {
      const last = messages.at(-1)
      return {
        body: { id, trigger, messageId, messages: messages.slice(-1), ...answers.take(last) },
      }
    },
  })
}

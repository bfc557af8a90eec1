import type { Chat } from '@ai-sdk/react'
import type { UIMessage } from 'ai'

type Chatting<Message extends UIMessage> = Pick<
  Chat<Message>,
  | 'sendMessage'
  | 'regenerate'
  | 'stop'
  | 'resumeStream'
  | 'clearError'
  | 'addToolOutput'
  | 'addToolApprovalResponse'
>

/** The ways of a chat as they are when they are used: those that `useChat` gives are from before the chat was attached. */
export function bindChat<Message extends UIMessage>(chat: Chat<Message>): Chatting<Message> {
  return {
    sendMessage: (...given) => chat.sendMessage(...given),
    regenerate: (...given) => chat.regenerate(...given),
    stop: () => chat.stop(),
    resumeStream: (...given) => chat.resumeStream(...given),
    clearError: () => chat.clearError(),
    addToolOutput: (...given) => chat.addToolOutput(...given),
    addToolApprovalResponse: (...given) => chat.addToolApprovalResponse(...given),
  }
}

import { useChat } from '@ai-sdk/react'
import { useCallback } from 'react'

import { loadChat, type SavedChat, stopTurn, transport } from '../chat/chat-api.ts'
import { type Message, Metadata } from '../chat/message.ts'
import { readProblem } from '../chat/problem.ts'
import { planRecovery } from '../chat/recovery.ts'
import { rememberChat } from './use-chat-location.ts'

/** The conversation: what is shown and what the reader can do. */
export function useDemoChat(id: string, saved: SavedChat) {
  const chat = useChat<Message>({
    id,
    messages: saved.messages,
    transport,
    messageMetadataSchema: Metadata,
    resume: saved.running,
    // A frame or two: faster than the eye, and a burst of chunks costs one rendering.
    experimental_throttle: 33,
  })
  const { messages, status, error, sendMessage, stop, regenerate, setMessages } = chat
  const { resumeStream, clearError } = chat
  const busy = status === 'submitted' || status === 'streaming'

  const send = (text: string) => {
    rememberChat(id)
    void sendMessage({ text })
  }
  const stopAnswer = async () => {
    try {
      // Leaving alone would let the server write on for those who may come back.
      await stopTurn(id)
    } finally {
      await stop()
    }
  }
  const recover = async () => {
    const recovery = planRecovery(messages, await loadChat(id))
    switch (recovery.step) {
      case 'resend':
        setMessages(recovery.before)
        return sendMessage(recovery.message)
      case 'resume':
        setMessages(recovery.messages)
        return resumeStream()
      case 'show':
        setMessages(recovery.messages)
        return clearError()
      case 'regenerate':
        return regenerate()
    }
  }
  return {
    messages,
    busy,
    problem: error && !busy ? readProblem(error, messages.at(-1)) : undefined,
    send,
    stop: () => void stopAnswer().catch(() => undefined),
    // While the server cannot be asked, the problem stays on the page, and with it the way to try again.
    recover: () => void recover().catch(() => undefined),
    regenerate: useCallback(() => void regenerate(), [regenerate]),
  }
}

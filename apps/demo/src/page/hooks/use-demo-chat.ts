import { Chat, useChat } from '@ai-sdk/react'
import { useCallback, useEffect, useState } from 'react'

import { loadChat, type SavedChat, stopTurn, transport } from '../chat/chat-api.ts'
import { type Message, Metadata } from '../chat/message.ts'
import { readProblem } from '../chat/problem.ts'
import { planRecovery } from '../chat/recovery.ts'
import { rememberChat } from './use-chat-location.ts'

/** The conversation: what is shown and what the reader can do. */
export function useDemoChat(id: string, saved: SavedChat) {
  // A chat of our own: the one that useChat makes (3.0.323) hides from itself that the transport replays a resumed
  // answer from its first chunk, and would show the beginning twice after a lost connection.
  const [chat] = useState(
    () =>
      new Chat<Message>({
        id,
        messages: saved.messages,
        transport,
        messageMetadataSchema: Metadata,
      }),
  )
  const { messages, status, error, sendMessage, setMessages, ...actions } = useChat<Message>({
    chat,
    // A frame or two: faster than the eye, and a burst of chunks costs one rendering.
    experimental_throttle: 33,
  })
  const { stop, regenerate, clearError } = actions
  useEffect(() => {
    // What goes wrong here is shown as the chat's problem.
    if (saved.running) resume(chat).catch(() => undefined)
  }, [chat, saved])
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
        return resume(chat)
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

/** Shows the answer that is being written, from its first chunk on. */
async function resume(chat: Chat<Message>): Promise<void> {
  await chat.resumeStream()
  if (chat.status !== 'ready' || chat.messages.at(-1)?.role === 'assistant') return
  // It ended after the server said that it was running: there was nothing to resume, and the server has it whole.
  const saved = await loadChat(chat.id)
  if (saved) chat.messages = saved.messages
}

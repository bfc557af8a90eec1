import { useChat } from '@ai-sdk/react'
import { useCallback, useEffect, useState } from 'react'

import { isWaiting } from '../chat/approval.ts'
import { loadChat, type SavedChat, stopTurn } from '../chat/chat-api.ts'
import { type Conversation, openConversation } from '../chat/conversation.ts'
import { resume } from '../chat/follow-chat.ts'
import type { Message } from '../chat/message.ts'
import { readProblem } from '../chat/problem.ts'
import { planRecovery } from '../chat/recovery.ts'
import type { Draft } from '../composer/use-draft.ts'
import { useBrowserTools } from './use-browser-tools.ts'
import { rememberChat } from './use-chat-location.ts'
import { useDecisions } from './use-decisions.ts'
import { useWatch } from './use-watch.ts'

/** The conversation: what is shown and what the reader can do. */
export function useDemoChat(id: string, saved: SavedChat, onApprovalsChanged: () => void) {
  const [conversation] = useState(() => openConversation(id, saved))
  const { chat } = conversation
  const { messages, status, error, sendMessage, stop, regenerate } = useChat<Message>({
    chat,
    // A frame or two: faster than the eye, and a burst of chunks costs one rendering.
    experimental_throttle: 33,
  })
  const busy = status === 'submitted' || status === 'streaming'
  useEffect(() => {
    // What goes wrong here is shown as the chat's problem.
    if (saved.running) resume(conversation).catch(() => undefined)
  }, [conversation, saved])
  useWatch(conversation, onApprovalsChanged)
  useBrowserTools(conversation, messages.at(-1), busy)
  const { decide, refusals, refused } = useDecisions(conversation, error, onApprovalsChanged)
  useEffect(() => {
    if (!busy) onApprovalsChanged()
  }, [busy, onApprovalsChanged])

  const send = ({ text, files }: Draft) => {
    rememberChat(id)
    void sendMessage(text === '' ? { files } : { text, files })
  }
  const edit = useCallback(
    (message: Message, text: string) => {
      const files = message.parts.filter((part) => part.type === 'file')
      void sendMessage({ text, files, messageId: message.id })
    },
    [sendMessage],
  )
  const stopAnswer = async () => {
    try {
      // Leaving alone would let the server write on for those who may come back.
      await stopTurn(id)
    } finally {
      await stop()
    }
  }
  const last = messages.at(-1)
  return {
    messages,
    busy,
    problem: error && !busy && !refused ? readProblem(error, last) : undefined,
    send,
    /** Says something else in the place of a message; what followed it is gone. */
    edit,
    stop: () => void stopAnswer().catch(() => undefined),
    // While the server cannot be asked, the problem stays on the page, and with it the way to try again.
    recover: () => void recover(conversation).catch(() => undefined),
    regenerate: useCallback(() => void regenerate(), [regenerate]),
    /** Whether another answer may take the place of the last one. */
    canRegenerate: last?.role === 'assistant' && !busy && !error && !isWaiting(last),
    decide,
    refusals,
  }
}

async function recover(conversation: Conversation): Promise<void> {
  const { chat } = conversation
  const recovery = planRecovery(chat.messages, await loadChat(chat.id))
  switch (recovery.step) {
    case 'resend':
      chat.messages = recovery.before
      return chat.sendMessage(recovery.message)
    case 'resume':
      chat.messages = recovery.messages
      await resume(conversation)
      return
    case 'show':
      chat.messages = recovery.messages
      return chat.clearError()
    case 'regenerate':
      return chat.regenerate()
  }
}

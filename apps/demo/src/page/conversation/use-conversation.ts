import { useAdkChat, type Problem } from 'adk-stream-protocol/react'
import type { UIMessage } from 'ai'
import { useCallback, useEffect, useRef } from 'react'

import type { Draft } from '../composer/composer.tsx'
import { storesChats } from '../settings.ts'
import { BROWSER_TOOLS } from '../browser-tools.ts'
import { isReplying } from '../inspector/inspection.ts'
import { api, live, transports } from '../wire/wire.ts'
import type { ConversationProps } from './conversation.tsx'
import { storeDirectChat } from './direct-chat.ts'
import { toMarkdown } from './message-actions.tsx'

type ConversationOptions = Pick<ConversationProps, 'id' | 'mode' | 'saved' | 'onStarted'>

/** The chat over the transport of its mode, with stable functions for the page. */
export function useConversation({ id, mode, saved, onStarted }: ConversationOptions) {
  const isStored = storesChats(mode)
  const chat = useAdkChat({
    id,
    transport: transports[mode],
    messages: saved.messages,
    resume: saved.running,
    tools: BROWSER_TOOLS,
    ...(isStored && { api }),
  })
  const { messages, status, attached, sendMessage, stop, regenerate, recover } = chat
  const busy = status === 'submitted' || status === 'streaming'
  const isStarted = messages.length > 0
  useEffect(() => {
    if (isStarted) onStarted()
  }, [isStarted, onStarted])
  useEffect(() => isReplying.set(busy), [busy])
  useEffect(() => {
    if (!isStored && !busy && messages.length > 0) storeDirectChat({ id, messages })
  }, [id, isStored, busy, messages])
  const regenerateLast = useCallback(() => void regenerate(), [regenerate])
  // The server starts a reply to speech by itself, so the status of the chat does not show it.
  const isSpeechReply = attached?.isWriting(messages.at(-1)?.id ?? '') ?? false
  return {
    chat,
    busy,
    // The chat reports an error as its problem.
    send: useCallback(
      ({ text, files }: Draft) => void sendMessage(text === '' ? { files } : { text, files }),
      [sendMessage],
    ),
    /** Sends text during a reply over the socket, and interrupts the reply. */
    interrupt: useCallback((text: string) => live.sendText(id, text), [id]),
    /** Replaces a message and everything after it. */
    edit: useCallback(
      (message: UIMessage, text: string) => {
        const files = message.parts.filter((part) => part.type === 'file')
        void sendMessage({ text, files, messageId: message.id })
      },
      [sendMessage],
    ),
    stop: useCallback(() => void stop(), [stop]),
    regenerate: isSpeechReply ? undefined : regenerateLast,
    // While the server is unreachable, the problem and its button stay on the page.
    recover: useCallback(() => void recover().catch(() => undefined), [recover]),
  }
}

interface ShownChat {
  readonly messages: readonly UIMessage[]
  readonly problem: Problem | undefined
}

type Edit = (message: UIMessage, text: string) => void

/** Restores the text of an edit that the server refused, after the message has its old text again. */
export function useRefusedEdit(
  { messages, problem }: ShownChat,
  edit: Edit,
  restore: (text: string) => void,
): Edit {
  const sent = useRef<string | undefined>(undefined)
  const isRefused = problem?.kind === 'refused'
  useEffect(() => {
    const text = sent.current
    if (!isRefused || text === undefined) return
    if (messages.some((message) => message.role === 'user' && toMarkdown(message) === text)) return
    sent.current = undefined
    restore(text)
  }, [isRefused, messages, restore])
  return useCallback(
    (message, text) => {
      sent.current = text.trim()
      edit(message, text)
    },
    [edit],
  )
}

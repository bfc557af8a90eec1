import { useAdkChat } from 'adk-stream-protocol/react'
import type { UIMessage } from 'ai'
import { useCallback, useEffect } from 'react'

import type { Draft } from '../composer/use-draft.ts'
import { keepsChats } from '../settings/mode.ts'
import { BROWSER_TOOLS } from '../tools/browser-tools.ts'
import { shownChat } from '../wire/shown-chat.ts'
import { api, transports } from '../wire/wire.ts'
import type { ConversationProps } from './conversation.tsx'
import { keepDirectChat } from './direct-chat.ts'

type Asked = Pick<ConversationProps, 'id' | 'mode' | 'saved' | 'onBegun'>

/** The chat over the transport of its mode, and what the reader can do in it. All functions stay the same while it does. */
export function useConversation({ id, mode, saved, onBegun }: Asked) {
  const isKept = keepsChats(mode)
  const chat = useAdkChat({
    id,
    transport: transports[mode],
    messages: saved.messages,
    resume: saved.running,
    tools: BROWSER_TOOLS,
    ...(isKept && { api }),
  })
  const { messages, status, attached, sendMessage, stop, regenerate, decide, recover } = chat
  const busy = status === 'submitted' || status === 'streaming'
  const isBegun = messages.length > 0
  useEffect(() => {
    if (isBegun) onBegun()
  }, [isBegun, onBegun])
  useEffect(() => shownChat.show({ messages, busy }), [messages, busy])
  useEffect(() => {
    if (!isKept && !busy && messages.length > 0) keepDirectChat({ id, messages })
  }, [id, isKept, busy, messages])
  const again = useCallback(() => void regenerate(), [regenerate])
  // An answer to what was spoken is written without the chat's asking: the status does not tell.
  const isSpoken = attached?.isWriting(messages.at(-1)?.id ?? '') ?? false
  return {
    messages,
    status,
    busy,
    problem: chat.problem,
    refusals: chat.refusals,
    votes: chat.votes,
    hints: chat.hints,
    unconfirmed: chat.unconfirmed,
    isConnected: chat.isConnected,
    // What fails is the chat's problem, and shown as that.
    send: useCallback(
      ({ text, files }: Draft) => void sendMessage(text === '' ? { files } : { text, files }),
      [sendMessage],
    ),
    /** Says something else in the place of a message; what followed it is gone. */
    edit: useCallback(
      (message: UIMessage, text: string) => {
        const files = message.parts.filter((part) => part.type === 'file')
        void sendMessage({ text, files, messageId: message.id })
      },
      [sendMessage],
    ),
    stop: useCallback(() => void stop(), [stop]),
    regenerate: isSpoken ? undefined : again,
    // While the server cannot be asked, the problem stays on the page, and with it the way to try again.
    recover: useCallback(() => void recover().catch(() => undefined), [recover]),
    decide,
  }
}

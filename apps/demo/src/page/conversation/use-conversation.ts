import { useAdkChat } from 'adk-stream-protocol/react'
import type { UIMessage } from 'ai'
import { useCallback, useEffect } from 'react'

import type { Draft } from '../composer/use-draft.ts'
import { storesChats } from '../settings/mode.ts'
import { BROWSER_TOOLS } from '../tools/browser-tools.ts'
import { shownChat } from '../wire/shown-chat.ts'
import { api, transports } from '../wire/wire.ts'
import type { ConversationProps } from './conversation.tsx'
import { storeDirectChat } from './direct-chat.ts'

type Asked = Pick<ConversationProps, 'id' | 'mode' | 'saved' | 'onStarted'>

/** The chat over the transport of its mode, and what the reader can do in it. All functions stay the same while it does. */
export function useConversation({ id, mode, saved, onStarted }: Asked) {
  const isKept = storesChats(mode)
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
  const isStarted = messages.length > 0
  useEffect(() => {
    if (isStarted) onStarted()
  }, [isStarted, onStarted])
  useEffect(() => shownChat.show({ messages, busy }), [messages, busy])
  useEffect(() => {
    if (!isKept && !busy && messages.length > 0) storeDirectChat({ id, messages })
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

import { Chat } from '@ai-sdk/react'
import type { ChatTransport, UIMessage, UITools } from 'ai'
import { useState } from 'react'

import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import type { ResponseChannel } from '../../client/transports/response-channel.ts'
import { paceRenders } from './pace-renders.ts'
import { LocalToolResults } from './use-local-browser-tools.ts'

/** Any AI SDK transport. Only `webSocketTransport` and `sseTransport` send decisions and tool results at any time. */
export type AnyChatTransport<Tools extends UITools> =
  | (ChatTransport<AdkUIMessage> & ResponseChannel)
  | ChatTransport<AdkUIMessage<Tools>>

/** A chat with what its kind of transport needs. */
export interface ChatInstance<Tools extends UITools> {
  readonly id: string
  readonly transport: AnyChatTransport<Tools>
  readonly chat: Chat<AdkUIMessage<Tools>>
  /** Sends decisions and tool results. Undefined for a plain AI SDK transport. */
  readonly channel: ResponseChannel | undefined
  /** Collects tool results for the next request of a plain AI SDK transport. Undefined if there is a `channel`. */
  readonly results: LocalToolResults | undefined
}

interface ChatInstanceOptions<Tools extends UITools> {
  readonly id: string
  readonly transport: AnyChatTransport<Tools>
  readonly messages?: AdkUIMessage<Tools>[] | undefined
  readonly onError: (error: Error) => void
}

/**
 * Returns one chat per id and transport. The chat is created during rendering and does nothing until it is attached. It is not
 * created by `useChat`, because that (3.0.323) does not let its own chat see that a resumed reply replays from its first chunk.
 */
export function useChatInstance<Tools extends UITools>(
  options: ChatInstanceOptions<Tools>,
): ChatInstance<Tools> {
  const [instance, setInstance] = useState(() => createInstance(options))
  if (instance.id === options.id && instance.transport === options.transport) return instance
  const next = createInstance(options)
  setInstance(next)
  return next
}

function createInstance<Tools extends UITools>(
  options: ChatInstanceOptions<Tools>,
): ChatInstance<Tools> {
  const { id, transport, messages = [], onError } = options
  const channel = isChannel(transport) ? transport : undefined
  const results = channel ? undefined : new LocalToolResults()
  const chat = new Chat<AdkUIMessage<Tools>>({
    id,
    messages: [...messages],
    transport,
    onError,
    ...(results && { sendAutomaticallyWhen: results.areComplete }),
  })
  paceMessages(chat)
  return { id, transport, chat, channel, results }
}

interface ObservableMessages {
  '~registerMessagesCallback'?: (onChange: () => void, minMs?: number) => () => void
}

/** `useChat` renders whenever its own throttle allows it, even if the last drawing is not finished. This replaces the throttle. */
function paceMessages(chat: ObservableMessages): void {
  const register = chat['~registerMessagesCallback']
  if (!register) return
  chat['~registerMessagesCallback'] = (onChange, minMs = 0) => {
    if (minMs <= 0) return register(onChange)
    const { request, cancel } = paceRenders(onChange, minMs)
    const unregister = register(request)
    return () => {
      unregister()
      cancel()
    }
  }
}

function isChannel(transport: object): transport is ResponseChannel {
  return 'observeChat' in transport && 'openStream' in transport && 'responses' in transport
}

type ChatMethods<Message extends UIMessage> = Pick<
  Chat<Message>,
  | 'sendMessage'
  | 'regenerate'
  | 'stop'
  | 'resumeStream'
  | 'clearError'
  | 'addToolOutput'
  | 'addToolApprovalResponse'
>

/** Returns stable methods that look up the chat's method at each call. `useChat` returns the methods from before the chat was attached. */
export function bindChat<Message extends UIMessage>(chat: Chat<Message>): ChatMethods<Message> {
  return {
    sendMessage: (...args) => chat.sendMessage(...args),
    regenerate: (...args) => chat.regenerate(...args),
    stop: () => chat.stop(),
    resumeStream: (...args) => chat.resumeStream(...args),
    clearError: () => chat.clearError(),
    addToolOutput: (...args) => chat.addToolOutput(...args),
    addToolApprovalResponse: (...args) => chat.addToolApprovalResponse(...args),
  }
}

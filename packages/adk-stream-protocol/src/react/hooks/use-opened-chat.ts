import { Chat } from '@ai-sdk/react'
import type { ChatTransport, UITools } from 'ai'
import { useState } from 'react'

import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import type { ResponseChannel } from '../../client/transports/response-channel.ts'
import { LocalToolResults } from './local-tool-results.ts'

/** Any transport of the AI SDK; `webSocketTransport` and `sseTransport` are looked after. */
export type AnyChatTransport<Tools extends UITools> =
  | (ChatTransport<AdkUIMessage> & ResponseChannel)
  | ChatTransport<AdkUIMessage<Tools>>

/** A chat, with what its kind of transport needs. */
export interface OpenedChat<Tools extends UITools> {
  readonly id: string
  readonly transport: AnyChatTransport<Tools>
  readonly chat: Chat<AdkUIMessage<Tools>>
  /** Where answers travel by themselves; nothing for a foreign transport. */
  readonly channel: ResponseChannel | undefined
  /** What takes its place there. */
  readonly answers: LocalToolResults | undefined
}

interface Wanted<Tools extends UITools> {
  readonly id: string
  readonly transport: AnyChatTransport<Tools>
  readonly messages?: AdkUIMessage<Tools>[] | undefined
  readonly onError: (error: Error) => void
}

/**
 * A chat per id and transport, made while rendering: it does nothing until it is attached. We make it and not `useChat`, whose own
 * (3.0.323) hides from itself that the transport replays a resumed answer from its first chunk.
 */
export function useOpenedChat<Tools extends UITools>(wanted: Wanted<Tools>): OpenedChat<Tools> {
  const [opened, setOpened] = useState(() => open(wanted))
  if (opened.id === wanted.id && opened.transport === wanted.transport) return opened
  const next = open(wanted)
  setOpened(next)
  return next
}

function open<Tools extends UITools>(wanted: Wanted<Tools>): OpenedChat<Tools> {
  const { id, transport, messages = [], onError } = wanted
  const channel = isChannel(transport) ? transport : undefined
  const answers = channel ? undefined : new LocalToolResults()
  const chat = new Chat<AdkUIMessage<Tools>>({
    id,
    messages: [...messages],
    transport,
    onError,
    ...(answers && { sendAutomaticallyWhen: answers.areComplete }),
  })
  return { id, transport, chat, channel, answers }
}

function isChannel(transport: object): transport is ResponseChannel {
  return 'observeChat' in transport && 'openStream' in transport && 'responses' in transport
}

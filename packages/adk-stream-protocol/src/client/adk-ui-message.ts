import type { ChatTransport, UIMessage, UIMessageChunk, UITools } from 'ai'

import type { DataParts, MessageMetadata } from '../protocol/message.ts'

/** The data parts in the form that the AI SDK asks for. */
export type AdkDataParts = { [Name in keyof DataParts]: DataParts[Name] }

/** A message of the bridge; `Tools` names the inputs and outputs of the agent's tools: `{ pay: { input: …; output: … } }`. */
export type AdkUIMessage<Tools extends UITools = UITools> = UIMessage<
  MessageMetadata,
  AdkDataParts,
  Tools
>

/** Chunks as a chat reads them. */
export type AdkChunkStream = ReadableStream<UIMessageChunk<MessageMetadata, AdkDataParts>>

/** What a chat asks its transport for. */
export type SendOptions = Parameters<ChatTransport<AdkUIMessage>['sendMessages']>[0]
export type ReconnectOptions = Parameters<ChatTransport<AdkUIMessage>['reconnectToStream']>[0]

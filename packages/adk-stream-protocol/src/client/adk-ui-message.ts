import type { ChatTransport, UIMessage, UIMessageChunk, UITools } from 'ai'

import type { DataParts, MessageMetadata } from '../protocol/message.ts'

/** The data parts in the form that the AI SDK requires. */
type AdkDataParts = { [Name in keyof DataParts]: DataParts[Name] }

/** A message of the bridge. `Tools` has the input and output types of the agent's tools: `{ pay: { input: …; output: … } }`. */
export type AdkUIMessage<Tools extends UITools = UITools> = UIMessage<
  MessageMetadata,
  AdkDataParts,
  Tools
>

/** The stream that a chat reads. */
export type AdkChunkStream = ReadableStream<UIMessageChunk<MessageMetadata, AdkDataParts>>

/** The options that a chat passes to its transport. */
export type SendOptions = Parameters<ChatTransport<AdkUIMessage>['sendMessages']>[0]
export type ReconnectOptions = Parameters<ChatTransport<AdkUIMessage>['reconnectToStream']>[0]

import type { Chunk } from '../../protocol/chunk.ts'
import type { AdkChunkStream, ReconnectOptions } from '../adk-ui-message.ts'
import type { MessageView } from '../sync/chat-messages.ts'
import type { ResponseStates } from '../sync/response-states.ts'
import type { ChatObserver, ServerTurn } from './chat-observers.ts'
import type { ConnectionListener, ConnectionState } from './connection-state.ts'

export interface SentDecision {
  readonly chatId: string
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string
  /** Arguments to run the call with, instead of those shown. */
  readonly args?: Record<string, unknown>
  /** The response to a tool that asked for a payload. */
  readonly payload?: unknown
}

export type SentOutput = { readonly chatId: string; readonly toolCallId: string } & (
  | { readonly output: unknown }
  | { readonly errorText: string }
)

/** The stream that a chat reads, on a transport that can send responses while it is open. */
export interface OpenStream {
  /** Sends a decision. Resolves with the state of the approval. */
  decide(decision: SentDecision): Promise<string>
  /** Ends the stream for the chat, so that it can read another one. Returns the rest of the stream. */
  detachReader(chatId: string): ServerTurn | undefined
  /** Adds a chunk to the stream that the server did not send. */
  pushChunk(chatId: string, chunk: Chunk): void
}

/** The stored messages of a chat, without the turn that is running. */
export interface StoredConversation {
  readonly messages: readonly MessageView[]
  readonly running: boolean
}

/** What `attachChat` needs of a transport, besides the AI SDK's `ChatTransport`. */
export interface ResponseChannel {
  readonly responses: ResponseStates
  /** Returns undefined if the chat reads no stream, or if the transport sends responses in requests only. */
  openStream(chatId: string): OpenStream | undefined
  /** Sends the output of a browser tool outside requests. Resolves when the server has it. */
  toolOutput?(output: SentOutput): Promise<void>
  /** Returns a function that removes the observer. */
  observeChat(chatId: string, observer: ChatObserver): () => void
  reconnectToStream(options: ReconnectOptions): Promise<AdkChunkStream | null>
  onConnection(listener: ConnectionListener): () => void
  /** Loads the stored conversation, if the transport can. */
  loadChat?(chatId: string): Promise<StoredConversation>
  /** Reports the state of a chat's feed, if the feed is part of the connection. `undefined`: the feed was closed. */
  onFeed?(feed: object, state: ConnectionState | undefined): void
}

import type { Chunk } from '../../protocol/chunk.ts'
import type { ResponseStates, MessageView } from '../sync/response-states.ts'
import type { AdkChunkStream, ReconnectOptions } from '../adk-ui-message.ts'
import type { ChatObserver, ServerTurn } from './chat-observer.ts'
import type { ConnectionListener, ConnectionState } from './connection-state.ts'

export interface DecisionSent {
  readonly chatId: string
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string
  /** Arguments in place of those shown. */
  readonly args?: Record<string, unknown>
  /** The answer to a tool that asked with a payload. */
  readonly payload?: unknown
}

export type OutputSent = { readonly chatId: string; readonly toolCallId: string } & (
  | { readonly output: unknown }
  | { readonly errorText: string }
)

/** The way of answers beside a stream that is open. */
export interface OpenStream {
  decide(decision: DecisionSent): Promise<string>
  toolOutput(output: OutputSent): Promise<void>
  /** Ends the stream that the chat reads, to make room for another; what still comes of it is given back. */
  divert(chatId: string): ServerTurn | undefined
  /** Gives the chat a chunk within the stream that it reads. */
  inject(chatId: string, chunk: Chunk): void
}

/** What the server has of a chat; it leaves out what is being written. */
export interface StoredConversation {
  readonly messages: readonly MessageView[]
  readonly running: boolean
}

/** What a transport offers to the keeper of a chat, besides what every transport has. */
export interface ResponseChannel {
  readonly answers: ResponseStates
  /** The way beside the stream that a chat reads now. Nothing when it reads none, or when answers travel in requests alone. */
  beside(chatId: string): OpenStream | undefined
  keep(chatId: string, keeper: ChatObserver): () => void
  reconnectToStream(options: ReconnectOptions): Promise<AdkChunkStream | null>
  onConnection(listener: ConnectionListener): () => void
  /** The conversation as the server has it, where the transport can ask for it. */
  loadChat?(chatId: string): Promise<StoredConversation>
  /** How the feed of a chat fares, where that is a part of the connection; nothing when it is over. */
  onFeed?(feed: object, state: ConnectionState | undefined): void
}

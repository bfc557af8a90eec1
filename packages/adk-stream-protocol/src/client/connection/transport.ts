import { AdkError } from '../adk-error.ts'
import type { Chunk } from '../../protocol/chunk.ts'
import type { AdkChunkStream, ReconnectOptions } from '../adk-ui-message.ts'
import type { MessageView } from './chat-messages.ts'
import type { ResponseStates } from './response-states.ts'
import type { ConnectionListener, ConnectionState } from './connection-state.ts'
import type { StreamEnd } from './turn-progress.ts'
import type { Message, TurnError } from '../../protocol/message.ts'

/** What `attachChat` needs of a transport, besides the AI SDK's `ChatTransport`. */
export interface ResponseChannel {
  /** @internal */
  readonly responses: ResponseStates
  /** Returns undefined if the chat reads no stream, or one that ends by itself when it waits for a response. */
  openStream(chatId: string): OpenStream | undefined
  /** Whether a request of the chat is in progress that is not a `resumeStream()`. */
  isSending(chatId: string): boolean
  /** Sends the output of a browser tool outside requests. Resolves when the server has it. */
  toolOutput(output: SentOutput): Promise<void>
  /** Takes back a decision that waits for a connection. Returns false if it may have arrived. */
  cancelDecision?(approvalId: string): boolean
  /** Adds a chunk to the stream that a chat reads, if there is one. */
  pushChunk?(chatId: string, chunk: Chunk): void
  /** Returns a function that removes the observer. */
  observeChat(chatId: string, observer: ChatObserver): () => void
  reconnectToStream(options: ReconnectOptions): Promise<AdkChunkStream | null>
  onConnection(listener: ConnectionListener): () => void
  /** Loads the stored conversation, or what has changed after a position, if the transport can. */
  loadChat?(
    chatId: string,
    options?: { readonly after?: string | undefined },
  ): Promise<StoredConversation>
  /** Reports the state of a chat's feed, if the feed is part of the connection. `undefined`: the feed was closed. */
  onFeed?(feed: object, state: ConnectionState | undefined): void
}

/** The stream that a chat reads, while responses are sent beside it. */
export interface OpenStream {
  /** Sends a decision. Resolves with the state of the approval. */
  decide(decision: SentDecision): Promise<string>
  /** Ends the stream for the chat, so that it can read another one. Returns the rest of the stream. Undefined if the transport cannot do this. */
  readonly detachReader?: (chatId: string) => ServerTurn | undefined
  /** Adds a chunk to the stream that the server did not send. */
  pushChunk(chatId: string, chunk: Chunk): void
}

/** The stored messages of a chat, without the turn that is running. */
export interface StoredConversation {
  readonly messages: readonly MessageView[]
  readonly running: boolean
  /** The position up to which they show the chat. Undefined if the source of the messages does not know it. */
  readonly position?: string | undefined
  /** The position after which the messages have changed. Undefined if they are all messages. */
  readonly after?: string | undefined
}

/**
 * A person's decision about a call.
 *
 * @inline
 */
export interface DecisionGiven {
  readonly approved: boolean
  readonly reason?: string | undefined
  /** Arguments to run the call with, instead of those shown. */
  readonly args?: Readonly<Record<string, unknown>> | undefined
  /** The response to a tool that asked for a payload. */
  readonly payload?: unknown
  /** The digest of the preview that the person saw. */
  readonly preview?: string | undefined
  /** The id of the grant that the person chose, of those that the approval offers. */
  readonly offer?: string | undefined
}

/** A decision to send. */
export interface SentDecision extends DecisionGiven {
  readonly chatId: string
  readonly approvalId: string
}

export type SentOutput = { readonly chatId: string; readonly toolCallId: string } & (
  | { readonly output: unknown }
  | { readonly errorText: string }
)

/** Why a decision that a person took back was not sent. It is not reported as an error. */
export const DECISION_CANCELLED = new AdkError('unavailable', 'The decision was taken back.')

/** A turn that a chat did not request. */
export interface ServerTurn {
  readonly messageId: string
  readonly userMessage?: Message
  /** Whether the chunks continue the chat's message. If not, they replay it from its start. */
  readonly continues: boolean
  readonly chunks: AsyncIterable<Chunk>
}

/** How a chat got a stream: it requested a turn, or it resumed one. */
export type StreamSource = 'requested' | 'resumed'

/** Receives what a transport does for a chat, see `attachChat`. */
export interface ChatObserver {
  /** The `Chat` object. Another one may have the same id. */
  readonly chat: object
  /** Called before the chat reads a chunk. If it returns a promise, the chat reads the chunk when the promise resolves. */
  readonly onChunk: (chunk: Chunk, source: StreamSource) => Promise<void> | undefined
  /** A stream of the chat has ended, or failed. */
  readonly onStreamEnded: (end: StreamEnd) => void
  /** The server rejected a request with these responses. */
  readonly onResponsesRefused: (ids: readonly string[], error: unknown) => void
  readonly onTurn: (turn: ServerTurn) => void
  /** The user wrote something during a reply, or said something. */
  readonly onUserMessage: (message: Message, source: 'written' | 'spoken') => void
  /** The server rejected a message that was sent during a reply. */
  readonly onTextRefused: (messageId: string, error: unknown) => void
  /** Returns the ids of the approvals and questions that the chat shows as open. */
  readonly listOpenApprovals: () => string[]
  /** The server has handled the stop of a reply. */
  readonly onStopped: () => void
  /**
   * Shows the stored messages. Resolves with their ids, or with undefined if they cannot be loaded. If the stored version of `edited` has
   * other content, it shows nothing, so that the chat keeps the edited one, and leaves its id out.
   */
  readonly reload: (edited?: MessageView) => Promise<readonly string[] | undefined>
}

/** Returns the newest observer of a chat id, or the one of this `Chat`. */
export type FindObserver = (chatId: string, chat?: object) => ChatObserver | undefined

/** The observers of a transport, by chat id. */
export interface ChatObservers {
  readonly find: FindObserver
  /** Returns a function that removes the observer. */
  add(chatId: string, observer: ChatObserver): () => void
}

export function createChatObservers(): ChatObservers {
  const observers = new Map<string, ChatObserver[]>()
  return {
    find: (chatId, chat) =>
      observers.get(chatId)?.findLast((each) => chat === undefined || each.chat === chat),
    add: (chatId, observer) => {
      observers.set(chatId, [...(observers.get(chatId) ?? []), observer])
      return () => {
        const left = observers.get(chatId)?.filter((other) => other !== observer) ?? []
        if (left.length > 0) observers.set(chatId, left)
        else observers.delete(chatId)
      }
    },
  }
}

/**
 * The agent of new chats, if the bridge has several: one for all of them, or one for each.
 *
 * @inline
 */
export type AgentOption = string | ((chatId: string) => string | undefined)

/** Returns the field of a body or a frame that names the agent of a chat. Returns an empty object if there is none. */
export function nameAgent(option: AgentOption | undefined, chatId: string): { agent?: string } {
  const agent = typeof option === 'function' ? option(chatId) : option
  return agent === undefined ? {} : { agent }
}

interface StreamOptions {
  /** Returns the observer of the chat that reads the stream, if the chat is attached. */
  readonly observer: () => ChatObserver | undefined
  readonly onCancel: () => void | Promise<void>
  readonly source: StreamSource
  /** Returns what was read of the turn. Called when the stream has ended. */
  readonly readEnd: () => StreamEnd
  /** Called with a function that adds a chunk to the stream, as long as it is open. */
  readonly onOpen?: (push: (chunk: Chunk) => void) => void
}

/**
 * Turns chunks into the stream that a chat reads. The chat gets a chunk when it has processed the previous one: a stream without a buffer
 * is pulled no earlier.
 */
export function toChunkStream(
  chunks: AsyncIterator<Chunk, void>,
  { observer, onCancel, source, readEnd, onOpen }: StreamOptions,
): AdkChunkStream {
  let reported: TurnError | undefined
  /** The chat reads no further. Without this, `chunks` would never release what it holds. */
  const finish = async (): Promise<void> => void (await chunks.return?.())
  const pull = async (controller: ReadableStreamDefaultController<Chunk>): Promise<void> => {
    const next = await chunks.next().catch((error: unknown) => {
      observer()?.onStreamEnded(readEnd())
      throw error
    })
    if (next.done === true) {
      controller.close()
      observer()?.onStreamEnded(readEnd())
      return
    }
    const chunk = next.value
    if (chunk.type === 'error') {
      const { code = 'internal', retryAfterSeconds } = reported ?? {}
      await finish()
      controller.error(new AdkError(code, chunk.errorText, retryAfterSeconds))
      observer()?.onStreamEnded(readEnd())
      return
    }
    // The metadata has the code of an error. The `error` chunk of the AI SDK, which follows it, has none.
    if (chunk.type === 'message-metadata') reported = chunk.messageMetadata.error
    const pending = observer()?.onChunk(chunk, source)
    if (pending) await pending
    controller.enqueue(chunk)
  }
  const cancel = async (): Promise<void> => {
    await onCancel()
    await finish()
  }
  const start = (controller: ReadableStreamDefaultController<Chunk>): void =>
    onOpen?.((chunk) => controller.enqueue(chunk))
  return new ReadableStream<Chunk>({ start, pull, cancel }, { highWaterMark: 0 })
}

/** Returns a stream that has ended. */
export function emptyStream(): AdkChunkStream {
  return new ReadableStream({ start: (controller) => controller.close() })
}

/** Reads the chunks of a stream. Streams are not async iterable in every browser. */
export async function* readChunks(stream: AdkChunkStream): AsyncGenerator<Chunk, void> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      // The streams of the transports hold the bridge's chunks.
      yield value as Chunk
    }
  } finally {
    // A stream that is not read any more has no handler for its errors.
    await reader.cancel().catch(() => undefined)
  }
}

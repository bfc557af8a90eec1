import type { Chunk } from '../../protocol/chunk.ts'
import type { Message } from '../../protocol/message.ts'

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
  readonly onStreamEnded: () => void
  /** The connection was lost and is back. `reconnectToStream` returns the rest of the stream. */
  readonly onStreamInterrupted: () => void
  /** The server rejected a request with these responses. */
  readonly onResponsesRefused: (ids: readonly string[], error: unknown) => void
  readonly onTurn: (turn: ServerTurn) => void
  /** The user wrote something during a reply, or said something. */
  readonly onUserMessage: (message: Message, source: 'written' | 'spoken') => void
  /** Shows the stored messages. Resolves with their ids, or with undefined if they cannot be loaded. */
  readonly reload: () => Promise<readonly string[] | undefined>
}

/** Returns the newest observer of a chat id, or the one of this `Chat`. */
export type FindObserver = (chatId: string, chat?: object) => ChatObserver | undefined

/** The observers of a transport, by chat id. */
export class ChatObservers {
  readonly #observers = new Map<string, ChatObserver[]>()

  readonly find: FindObserver = (chatId, chat) =>
    this.#observers.get(chatId)?.findLast((each) => chat === undefined || each.chat === chat)

  /** Returns a function that removes the observer. */
  add(chatId: string, observer: ChatObserver): () => void {
    this.#observers.set(chatId, [...(this.#observers.get(chatId) ?? []), observer])
    return () => {
      const left = this.#observers.get(chatId)?.filter((other) => other !== observer) ?? []
      if (left.length > 0) this.#observers.set(chatId, left)
      else this.#observers.delete(chatId)
    }
  }
}

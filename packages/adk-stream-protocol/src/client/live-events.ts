import type { Message } from '../protocol/message.ts'
import { ChunkSpool } from './chunk-spool.ts'
import type { ChatKeeper } from './chat-keeper.ts'
import type { IncomingFrameOf } from './server-frames.ts'

/** What happens in a chat that is watched, besides the answers that it asked for. */
export type LiveEvent =
  | { readonly type: 'turn'; readonly messageId: string }
  | { readonly type: 'user-message'; readonly message: Message }
  | {
      readonly type: 'transcript'
      readonly author: 'user' | 'model'
      readonly text: string
      readonly final: boolean
    }
  /** The person spoke over the model: drop what is left of its sound. */
  | { readonly type: 'interrupted' }
  | { readonly type: 'status'; readonly status: string }
  /** Speech of the model, 16 bit PCM at 24 kHz. */
  | { readonly type: 'audio'; readonly bytes: ArrayBuffer }

/** Hears what happens in a chat that is watched. */
export type LiveListener = (event: LiveEvent) => void

/** How sound comes: as binary frames, within the messages, or not at all. */
export type AudioMode = 'binary' | 'base64' | 'none'

type EventFrame = IncomingFrameOf<'turn' | 'user-message' | 'transcript' | 'interrupted' | 'status'>

/** The chats that a client watches, and the turns in them that it did not ask for. */
export class LiveEvents {
  readonly #keeperOf: (chatId: string) => ChatKeeper | undefined
  readonly #chats = new Map<string, { audio: AudioMode; listeners: Set<LiveListener> }>()
  readonly #turns = new Map<string, ChunkSpool>()
  /** The chat that hears and speaks in bytes. */
  speaking: string | undefined

  constructor(keeperOf: (chatId: string) => ChatKeeper | undefined) {
    this.#keeperOf = keeperOf
  }

  get size(): number {
    return this.#chats.size
  }

  watch(chatId: string, audio: AudioMode, listener: LiveListener): () => void {
    const known = this.#chats.get(chatId)
    const listeners = known?.listeners ?? new Set()
    listeners.add(listener)
    this.#chats.set(chatId, { audio, listeners })
    if (audio === 'binary') this.speaking = chatId
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.#chats.delete(chatId)
    }
  }

  /** What the server is to be told of on a new socket. */
  watched(): { id: string; audio: AudioMode }[] {
    return [...this.#chats].map(([id, { audio }]) => ({ id, audio }))
  }

  onFrame(frame: EventFrame): void {
    const { id } = frame
    const keeper = this.#keeperOf(id)
    if (frame.type === 'turn') {
      const { messageId, userMessage, requestId } = frame
      const chunks = new ChunkSpool()
      this.#turns.set(requestId, chunks)
      this.#tell(id, { type: 'turn', messageId })
      const said = userMessage ? { userMessage } : {}
      keeper?.onTurn({ messageId, ...said, chunks, continues: false })
    } else if (frame.type === 'user-message') {
      keeper?.onUserMessage(frame.message, 'heard')
      this.#tell(id, frame)
    } else this.#tell(id, frame)
  }

  /** Takes a frame of a turn that nobody asked for. */
  onTurnFrame(frame: IncomingFrameOf<'start' | 'chunk' | 'end' | 'error' | 'no-active'>): boolean {
    const chunks = this.#turns.get(frame.requestId)
    if (!chunks) return false
    if (frame.type === 'chunk') chunks.push(frame.chunk)
    if (frame.type === 'end' || frame.type === 'error') {
      chunks.close()
      this.#turns.delete(frame.requestId)
    }
    return true
  }

  onAudio(bytes: ArrayBuffer): void {
    if (this.speaking !== undefined) this.#tell(this.speaking, { type: 'audio', bytes })
  }

  onDown(): void {
    for (const chunks of this.#turns.values()) chunks.close()
    this.#turns.clear()
  }

  #tell(chatId: string, event: LiveEvent): void {
    for (const listener of this.#chats.get(chatId)?.listeners ?? []) listener(event)
  }
}

import type { Message } from '../protocol/message.ts'
import { ChunkSpool } from './chunk-spool.ts'
import type { ChatKeeper } from './chat-keeper.ts'
import type { IncomingFrameOf } from './server-frames.ts'
import type { WireObserver } from './wire-events.ts'
import { WireTap } from './wire-events.ts'

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
  /** The socket was given up: nothing is told until somebody asks for something. */
  | { readonly type: 'given-up'; readonly error: unknown }

export type LiveListener = (event: LiveEvent) => void

export type AudioMode = 'binary' | 'base64' | 'none'

type EventFrame = IncomingFrameOf<'turn' | 'user-message' | 'transcript' | 'interrupted' | 'status'>

/** How each listener wants the sound. */
type Listeners = Map<LiveListener, AudioMode>

interface UnaskedTurn {
  readonly chunks: ChunkSpool
  readonly tap: WireTap
}

interface Parts {
  readonly keeperOf: (chatId: string) => ChatKeeper | undefined
  readonly observe: WireObserver | undefined
}

/** The chats that a client watches, and the turns in them that it did not ask for. */
export class LiveEvents {
  readonly #parts: Parts
  readonly #chats = new Map<string, Listeners>()
  readonly #turns = new Map<string, UnaskedTurn>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#chats.size
  }

  /** The chat that hears and speaks in bytes: the newest that is watched so. */
  get speaking(): string | undefined {
    return this.watched().findLast(({ audio }) => audio === 'binary')?.id
  }

  /** Give back ends it. */
  watch(chatId: string, audio: AudioMode, listener: LiveListener): () => void {
    const listeners: Listeners = this.#chats.get(chatId) ?? new Map()
    // One that is given twice is two.
    const own: LiveListener = (event) => listener(event)
    // The chat that was watched last is the one that speaks.
    if (audio === 'binary') this.#chats.delete(chatId)
    this.#chats.set(chatId, listeners.set(own, audio))
    return () => {
      listeners.delete(own)
      if (listeners.size === 0 && this.#chats.get(chatId) === listeners) this.#chats.delete(chatId)
    }
  }

  /** How the server is to send the sound of a chat: as the listener wants it who wants most. Nothing where nobody listens. */
  audioOf(chatId: string): AudioMode | undefined {
    const modes = [...(this.#chats.get(chatId)?.values() ?? [])]
    return MODES.find((mode) => modes.includes(mode))
  }

  /** What the server is to be told of on a new socket. */
  watched(): { id: string; audio: AudioMode }[] {
    return [...this.#chats.keys()].map((id) => ({ id, audio: this.audioOf(id) ?? 'none' }))
  }

  onFrame(frame: EventFrame): void {
    const { id } = frame
    const keeper = this.#parts.keeperOf(id)
    if (frame.type === 'turn') this.#begin(frame)
    else if (frame.type === 'user-message') {
      const { message } = frame
      this.#parts.observe?.({ type: 'user-message', chatId: id, message })
      keeper?.onUserMessage(message, 'heard')
      this.#tell(id, frame)
    } else this.#tell(id, frame)
  }

  /** Takes a frame of a turn that nobody asked for. */
  onTurnFrame(frame: IncomingFrameOf<'start' | 'chunk' | 'end' | 'error' | 'no-active'>): boolean {
    const turn = this.#turns.get(frame.requestId)
    if (!turn) return false
    if (frame.type === 'chunk') {
      turn.tap.chunk(frame.chunk)
      turn.chunks.push(frame.chunk)
    }
    if (frame.type === 'end' || frame.type === 'error') {
      turn.tap.end(frame.type === 'error' ? frame.errorText : undefined)
      turn.chunks.close()
      this.#turns.delete(frame.requestId)
    }
    return true
  }

  onAudio(bytes: ArrayBuffer): void {
    const { speaking } = this
    if (speaking !== undefined) this.#tell(speaking, { type: 'audio', bytes })
  }

  onDown(): void {
    for (const { chunks, tap } of this.#turns.values()) {
      tap.end('the connection was lost')
      chunks.close()
    }
    this.#turns.clear()
  }

  onGivenUp(error: unknown): void {
    for (const id of this.#chats.keys()) this.#tell(id, { type: 'given-up', error })
  }

  #begin({ id, messageId, userMessage, requestId }: IncomingFrameOf<'turn'>): void {
    const chunks = new ChunkSpool()
    const begun = { chatId: id, trigger: 'turn' as const, messageId, message: userMessage }
    this.#turns.set(requestId, { chunks, tap: new WireTap(this.#parts.observe, begun) })
    this.#tell(id, { type: 'turn', messageId })
    const said = userMessage ? { userMessage } : {}
    this.#parts.keeperOf(id)?.onTurn({ messageId, ...said, chunks, continues: false })
  }

  #tell(chatId: string, event: LiveEvent): void {
    for (const listener of this.#chats.get(chatId)?.keys() ?? []) listener(event)
  }
}

/** The most first. */
const MODES: readonly AudioMode[] = ['binary', 'base64', 'none']

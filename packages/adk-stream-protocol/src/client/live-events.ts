import type { Chunk } from '../protocol/chunk.ts'
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
  /** An answer of the model, asked for or not: it begins, goes on with another step, or is over. */
  | { readonly type: 'answer'; readonly phase: 'start' | 'step' | 'end' }
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
  readonly #chats = new Map<string, Set<Watcher>>()
  readonly #turns = new Map<string, UnaskedTurn>()
  /** Turns that a lost socket cut off, by their chat. */
  readonly #cut = new Map<string, UnaskedTurn>()
  /** The chat that hears and speaks in bytes. */
  speaking: string | undefined

  constructor(keeperOf: (chatId: string) => ChatKeeper | undefined) {
    this.#keeperOf = keeperOf
  }

  get size(): number {
    return this.#chats.size
  }

  watch(chatId: string, audio: AudioMode, listener: LiveListener): () => void {
    const watchers = this.#chats.get(chatId) ?? new Set()
    const watcher = { audio, listener }
    watchers.add(watcher)
    this.#chats.set(chatId, watchers)
    if (audio === 'binary') this.speaking = chatId
    return () => {
      watchers.delete(watcher)
      if (watchers.size === 0 && this.#chats.get(chatId) === watchers) this.#chats.delete(chatId)
    }
  }

  /** How the sound of a chat is to come: who wants it as bytes is not deprived of it by who wants none. */
  audioOf(chatId: string): AudioMode {
    const wanted = new Set([...(this.#chats.get(chatId) ?? [])].map(({ audio }) => audio))
    return AUDIO_MODES.find((mode) => wanted.has(mode)) ?? 'none'
  }

  /** What the server is to be told of on a new socket. The last one is the chat that speaks. */
  watched(): { id: string; audio: AudioMode }[] {
    return [...this.#chats.keys()]
      .toSorted(
        (first, second) => Number(first === this.speaking) - Number(second === this.speaking),
      )
      .map((id) => ({ id, audio: this.audioOf(id) }))
  }

  onFrame(frame: EventFrame): void {
    const { id } = frame
    const keeper = this.#keeperOf(id)
    if (frame.type === 'turn') {
      const { messageId, userMessage, requestId } = frame
      const chunks = new ChunkSpool()
      this.#turns.set(requestId, { chatId: id, messageId, chunks })
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
    const turn = this.#turns.get(frame.requestId)
    if (!turn) return false
    const { chatId, chunks } = turn
    if (frame.type === 'start') turn.onResumed?.()
    else if (frame.type === 'chunk') {
      this.onChunk(chatId, frame.chunk)
      chunks.push(frame.chunk)
    } else {
      chunks.close()
      this.#turns.delete(frame.requestId)
      // It ended while there was no connection.
      if (frame.type === 'no-active')
        void this.#keeperOf(chatId)
          ?.reload()
          .catch(() => undefined)
    }
    return true
  }

  /** A chunk of an answer in a chat, asked for or not. */
  onChunk(chatId: string, chunk: Chunk): void {
    const event = this.#chats.has(chatId) && toEvent(chunk)
    if (event) this.#tell(chatId, event)
  }

  onAudio(bytes: ArrayBuffer): void {
    if (this.speaking !== undefined) this.#tell(this.speaking, { type: 'audio', bytes })
  }

  onDown(): void {
    for (const turn of this.#turns.values()) {
      turn.chunks.close()
      this.#cut.set(turn.chatId, turn)
    }
    this.#turns.clear()
  }

  /** Goes on with the turns that were cut off; gives what to ask the server for. A chat that asks for itself needs nothing. */
  resume(asksItself: (chatId: string) => boolean): { requestId: string; id: string }[] {
    const cut = [...this.#cut.values()]
    this.#cut.clear()
    return cut
      .filter(({ chatId }) => this.#chats.has(chatId) && !asksItself(chatId))
      .map(({ chatId, messageId }) => {
        const requestId = crypto.randomUUID()
        const chunks = new ChunkSpool()
        const onResumed = (): void =>
          this.#keeperOf(chatId)?.onTurn({ messageId, chunks, continues: false })
        this.#turns.set(requestId, { chatId, messageId, chunks, onResumed })
        return { requestId, id: chatId }
      })
  }

  #tell(chatId: string, event: LiveEvent): void {
    for (const { listener } of this.#chats.get(chatId) ?? []) listener(event)
  }
}

interface UnaskedTurn {
  readonly chatId: string
  readonly messageId: string
  readonly chunks: ChunkSpool
  /** For one that was cut off: the server goes on with it. */
  readonly onResumed?: () => void
}

interface Watcher {
  readonly audio: AudioMode
  readonly listener: LiveListener
}

const AUDIO_MODES = ['binary', 'base64', 'none'] as const

/** What a chunk tells those who only listen. The words of the model are those that it speaks. */
function toEvent(chunk: Chunk): LiveEvent | undefined {
  if (chunk.type === 'text-delta')
    return { type: 'transcript', author: 'model', text: chunk.delta, final: false }
  if (chunk.type === 'text-end')
    return { type: 'transcript', author: 'model', text: '', final: true }
  const phase = PHASES[chunk.type]
  return phase && { type: 'answer', phase }
}

const PHASES: Readonly<Record<string, 'start' | 'step' | 'end'>> = {
  start: 'start',
  'start-step': 'step',
  finish: 'end',
  abort: 'end',
  error: 'end',
}

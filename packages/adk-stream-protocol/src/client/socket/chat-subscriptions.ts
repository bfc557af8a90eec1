import type { Chunk } from '../../protocol/chunk.ts'
import type { Message } from '../../protocol/message.ts'
import type { ChatObserver } from '../transports/chat-observer.ts'
import type { IncomingFrameOf } from './incoming-frame.ts'
import { ServerTurns } from './server-turns.ts'
import type { WireObserver } from '../transports/wire-events.ts'

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
  /** The socket was given up: nothing is told until somebody asks for something. */
  | { readonly type: 'given-up'; readonly error: unknown }

/** Hears of what happens in a live chat. */
export type LiveListener = (event: LiveEvent) => void

/** How sound comes: as binary frames, within the messages, or not at all. */
export type AudioMode = 'binary' | 'base64' | 'none'

type EventFrame = IncomingFrameOf<'turn' | 'user-message' | 'transcript' | 'interrupted' | 'status'>

/** How each listener wants the sound. */
type Listeners = Map<LiveListener, AudioMode>

interface Parts {
  readonly keeperOf: (chatId: string) => ChatObserver | undefined
  readonly observe: WireObserver | undefined
}

/** The chats that a client watches, and what is told of them. */
export class ChatSubscriptions {
  readonly #parts: Parts
  readonly #chats = new Map<string, Listeners>()
  readonly turns: ServerTurns

  constructor(parts: Parts) {
    this.#parts = parts
    const onChunk = (chatId: string, chunk: Chunk): void => this.onChunk(chatId, chunk)
    this.turns = new ServerTurns({ ...parts, onChunk })
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
    if (frame.type === 'turn') {
      this.#tell(id, { type: 'turn', messageId: frame.messageId })
      this.turns.begin(frame)
    } else if (frame.type === 'user-message') {
      const { message } = frame
      this.#parts.observe?.({ type: 'user-message', chatId: id, message })
      keeper?.onUserMessage(message, 'heard')
      this.#tell(id, frame)
    } else this.#tell(id, frame)
  }

  /** A chunk of an answer in a chat, asked for or not. */
  onChunk(chatId: string, chunk: Chunk): void {
    const event = this.#chats.has(chatId) && toEvent(chunk)
    if (event) this.#tell(chatId, event)
  }

  onAudio(bytes: ArrayBuffer): void {
    const { speaking } = this
    if (speaking !== undefined) this.#tell(speaking, { type: 'audio', bytes })
  }

  onGivenUp(error: unknown): void {
    for (const id of this.#chats.keys()) this.#tell(id, { type: 'given-up', error })
  }

  #tell(chatId: string, event: LiveEvent): void {
    for (const listener of this.#chats.get(chatId)?.keys() ?? []) listener(event)
  }
}

/** The most first. */
const MODES: readonly AudioMode[] = ['binary', 'base64', 'none']

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

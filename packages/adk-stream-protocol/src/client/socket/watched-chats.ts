import type { Chunk } from '../../protocol/chunk.ts'
import type { Message } from '../../protocol/message.ts'
import { AsyncQueue } from '../../shared/async.ts'
import {
  newId,
  type WireObserver,
  type WireRequest,
  type WireTap,
  createTap,
} from '../connection/wire-events.ts'
import type { FindObserver } from '../connection/transport.ts'
import type { IncomingFrameOf } from './socket-request.ts'

/** Something that happens in a watched chat, besides the streams that the chat requested. */
export type LiveEvent =
  | { readonly type: 'turn'; readonly messageId: string }
  | { readonly type: 'user-message'; readonly message: Message }
  | {
      readonly type: 'transcript'
      readonly author: 'user' | 'model'
      readonly text: string
      readonly final: boolean
    }
  /** A reply of the model, requested or not, starts, continues with another step, or ends. */
  | { readonly type: 'answer'; readonly phase: 'start' | 'step' | 'end' }
  /** The person interrupted the model. Drop the rest of its audio. */
  | { readonly type: 'interrupted' }
  | { readonly type: 'status'; readonly status: string }
  /** Speech of the model, 16 bit PCM at 24 kHz. */
  | { readonly type: 'audio'; readonly bytes: ArrayBuffer }
  /** The socket was given up. No events follow until the next request. */
  | { readonly type: 'given-up'; readonly error: unknown }

/**
 * Called with the events of a live chat.
 *
 * @inline
 */
export type LiveListener = (event: LiveEvent) => void

/**
 * How audio is sent: in binary frames, within the messages, or not at all.
 *
 * @inline
 */
export type AudioMode = 'binary' | 'base64' | 'none'

/** The audio mode that each listener wants. */
type ChatListeners = Map<LiveListener, AudioMode>

interface StreamedTurn {
  readonly chatId: string
  readonly messageId: string
  readonly chunks: AsyncQueue<Chunk>
  readonly tap: WireTap | undefined
  /** Whether the turn was interrupted, and its replay has not started. */
  readonly isResumed: boolean
}

/** The chats that a client watches: their listeners, and their turns that the client did not request. */
export class WatchedChats {
  readonly #findObserver: FindObserver
  readonly #observe: WireObserver | undefined
  readonly #chats = new Map<string, ChatListeners>()
  /** The turns that the client did not request, by the id of the request on the wire. */
  readonly #turns = new Map<string, StreamedTurn>()
  /** The turns that a lost socket interrupted, by chat. */
  readonly #interrupted = new Map<string, StreamedTurn>()

  constructor(findObserver: FindObserver, observe: WireObserver | undefined) {
    this.#findObserver = findObserver
    this.#observe = observe
  }

  get size(): number {
    return this.#chats.size
  }

  /** The chat that binary audio belongs to: the newest one that is watched with it. */
  get audioChatId(): string | undefined {
    return this.list().findLast(({ audio }) => audio === 'binary')?.id
  }

  /** Returns a function that unsubscribes. */
  add(chatId: string, audio: AudioMode, listener: LiveListener): () => void {
    const listeners: ChatListeners = this.#chats.get(chatId) ?? new Map()
    // A listener that is added twice is called twice.
    const own: LiveListener = (event) => listener(event)
    // The newest chat with binary audio comes last, see `audioChatId`.
    if (audio === 'binary') this.#chats.delete(chatId)
    this.#chats.set(chatId, listeners.set(own, audio))
    return () => {
      listeners.delete(own)
      if (listeners.size === 0 && this.#chats.get(chatId) === listeners) this.#chats.delete(chatId)
    }
  }

  /** Returns the audio mode to request for a chat: the richest that a listener wants. Returns undefined if the chat is not watched. */
  audioOf(chatId: string): AudioMode | undefined {
    const modes = [...(this.#chats.get(chatId)?.values() ?? [])]
    return MODES.find((mode) => modes.includes(mode))
  }

  /** Returns what to subscribe to over a new socket. */
  list(): { id: string; audio: AudioMode }[] {
    return [...this.#chats.keys()].map((id) => ({ id, audio: this.audioOf(id) ?? 'none' }))
  }

  /** Reports a chunk of a chat, of a requested turn or of another one. */
  onChunk(chatId: string, chunk: Chunk): void {
    const event = this.#chats.has(chatId) && toEvent(chunk)
    if (event) this.call(chatId, event)
  }

  onAudio(bytes: ArrayBuffer): void {
    const { audioChatId } = this
    if (audioChatId !== undefined) this.call(audioChatId, { type: 'audio', bytes })
  }

  onGivenUp(error: unknown): void {
    for (const id of this.#chats.keys()) this.call(id, { type: 'given-up', error })
  }

  call(chatId: string, event: LiveEvent): void {
    for (const listener of this.#chats.get(chatId)?.keys() ?? []) listener(event)
  }

  startTurn({ id: chatId, messageId, userMessage, requestId }: IncomingFrameOf<'turn'>): void {
    const request = { chatId, trigger: 'turn', messageId, message: userMessage } as const
    const { chunks } = this.#addTurn(requestId, request, false)
    const said = userMessage ? { userMessage } : {}
    this.#findObserver(chatId)?.onTurn({ messageId, ...said, chunks, continues: false })
  }

  onTurnFrame(frame: IncomingFrameOf<'start' | 'chunk' | 'end' | 'error' | 'no-active'>): void {
    const turn = this.#turns.get(frame.requestId)
    if (!turn) return
    const { chatId, messageId, chunks, tap, isResumed } = turn
    if (frame.type === 'start') {
      if (isResumed) this.#findObserver(chatId)?.onTurn({ messageId, chunks, continues: false })
    } else if (frame.type === 'chunk') {
      tap?.chunk(frame.chunk)
      this.onChunk(chatId, frame.chunk)
      chunks.push(frame.chunk)
    } else {
      tap?.end(frame.type === 'error' ? frame.errorText : undefined)
      chunks.close()
      this.#turns.delete(frame.requestId)
      // The turn ended while there was no connection. If loading fails, the messages stay as they are.
      if (frame.type === 'no-active')
        void this.#findObserver(chatId)
          ?.reload()
          .catch(() => undefined)
    }
  }

  onLost(): void {
    for (const turn of this.#turns.values()) {
      turn.tap?.end('the connection was lost')
      turn.chunks.close()
      this.#interrupted.set(turn.chatId, turn)
    }
    this.#turns.clear()
  }

  /** Resumes the interrupted turns. Returns the requests to send. */
  resumeTurns(isWanted: (chatId: string) => boolean): { requestId: string; id: string }[] {
    const turns = [...this.#interrupted.values()].filter(({ chatId }) => isWanted(chatId))
    this.#interrupted.clear()
    return turns.map(({ chatId, messageId }) => {
      const requestId = newId()
      this.#addTurn(requestId, { chatId, trigger: 'resume', messageId }, true)
      return { requestId, id: chatId }
    })
  }

  #addTurn(
    requestId: string,
    request: WireRequest & { readonly messageId: string },
    isResumed: boolean,
  ): StreamedTurn {
    const { chatId, messageId } = request
    const tap = this.#observe && createTap(this.#observe, request)
    const turn = { chatId, messageId, chunks: new AsyncQueue<Chunk>(), tap, isResumed }
    this.#turns.set(requestId, turn)
    return turn
  }
}

/** The richest first. */
const MODES: readonly AudioMode[] = ['binary', 'base64', 'none']

/** Returns what a chunk means to a listener. The text of a live model is what it speaks. */
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

import type { Chunk } from '../../protocol/chunk.ts'
import type { ClientFrameOf } from '../../protocol/client-frame.ts'
import type { AdkChunkStream } from '../adk-ui-message.ts'
import type { ChatObserver } from '../transports/chat-observer.ts'
import { AsyncQueue } from '../../shared/async-queue.ts'
import { toChunkStream } from '../transports/chunk-stream.ts'
import { newId } from '../../shared/new-id.ts'
import { Waits } from './waits.ts'
import type { WireTap } from '../transports/wire-events.ts'

export type RequestFrame = ClientFrameOf<'send'> | ClientFrameOf<'resume'>

/**
 * `new`: not sent. `asked`: sent, no answer. `reading`: the server answers. `healing`: the connection was lost in mid-answer, and
 * the server was asked to go on. `checking`: it was lost before the answer, and the server was asked whether it writes one.
 * `stopping`: the person wants no more of it, and the server does not know. `over`.
 */
type RequestState = 'new' | 'asked' | 'reading' | 'healing' | 'checking' | 'stopping' | 'over'

let births = 0

/** One answer that a chat asked for. */
export class SocketRequest {
  /** The name on the wire. One that is sent again has another. */
  id = newId()
  /** Counts requests in the order in which they were made. */
  readonly born = (births += 1)
  readonly chatId: string
  readonly frame: RequestFrame
  /** The `Chat` that reads it, where somebody looks after that. */
  readonly chat: object | undefined
  /** The answers of the person that travel with it. */
  readonly answered: readonly string[]
  /** The stream when the server has taken the request; nothing when there was nothing to resume. */
  readonly opened: Promise<AdkChunkStream | undefined>
  state: RequestState = 'new'
  messageId: string | undefined
  /** The requests whose place this one takes, while the server still answers them. */
  replaced: SocketRequest[] = []
  readonly stream: AdkChunkStream
  readonly tap: WireTap
  readonly #chunks = new AsyncQueue<Chunk>()
  readonly #waits = new Waits()
  #diverted: AsyncQueue<Chunk> | undefined
  #sequence = 0
  #open: (stream: AdkChunkStream | undefined) => void = () => undefined
  #refuse: (error: unknown) => void = () => undefined

  constructor(
    frame: RequestFrame,
    answered: readonly string[],
    hooks: {
      chat: object | undefined
      keeper: () => ChatObserver | undefined
      onCancel: (request: SocketRequest) => void
      tap: WireTap
    },
  ) {
    this.chatId = frame.id
    this.chat = hooks.chat
    this.frame = frame
    this.answered = answered
    this.tap = hooks.tap
    this.stream = toChunkStream(this.#chunks[Symbol.asyncIterator](), {
      keeper: hooks.keeper,
      onCancel: () => hooks.onCancel(this),
      isOwn: frame.type === 'send',
    })
    this.opened = new Promise((resolve, reject) => {
      this.#open = resolve
      this.#refuse = reject
    })
    this.opened.catch(() => undefined)
  }

  /** The frame under a name of its own. */
  named(type: 'as-asked' | 'resume'): RequestFrame {
    this.id = newId()
    this.#sequence = 0
    const { frame, id: requestId, chatId: id } = this
    return type === 'resume' ? { type, requestId, id } : { ...frame, requestId }
  }

  start(): void {
    this.state = 'reading'
    this.#open(this.stream)
  }

  /** Takes a chunk. False when one before it is missing. */
  take(sequence: number, chunk: Chunk): boolean {
    if (sequence < this.#sequence) return true
    if (sequence > this.#sequence) return false
    this.#sequence += 1
    if (chunk.type === 'start') this.messageId = chunk.messageId
    this.tap.chunk(chunk)
    this.#waits.read(chunk)
    const spool = this.#diverted ?? this.#chunks
    spool.push(chunk)
    return true
  }

  /** Gives the chat a chunk that is not the server's. */
  inject(chunk: Chunk): void {
    this.#chunks.push(chunk)
  }

  /** Ends the stream for its chat; what still comes goes to whoever reads what is given back. */
  divert(): AsyncQueue<Chunk> {
    this.#chunks.close()
    this.#diverted ??= new AsyncQueue<Chunk>()
    return this.#diverted
  }

  /** Whether it waits for a person or a page. */
  get isWaiting(): boolean {
    return this.#waits.isWaiting
  }

  /** Whether a chat reads it. */
  get isRead(): boolean {
    return this.state !== 'over' && this.state !== 'stopping' && !this.#diverted
  }

  end(): void {
    this.state = 'over'
    this.tap.end()
    this.#open(undefined)
    this.#chunks.close()
    this.#diverted?.close()
  }

  fail(error: unknown): void {
    this.state = 'over'
    this.tap.end(error)
    this.#refuse(error)
    this.#chunks.fail(error)
    this.#diverted?.close()
  }
}

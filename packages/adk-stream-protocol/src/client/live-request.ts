import type { Chunk } from '../protocol/chunk.ts'
import type { ClientFrameOf } from '../protocol/client-frame.ts'
import type { AdkChunkStream } from './adk-ui-message.ts'
import type { BeforeChunk } from './chunk-queue.ts'
import { ChunkQueue } from './chunk-queue.ts'
import { ChunkSpool } from './chunk-spool.ts'

export type RequestFrame = ClientFrameOf<'send'> | ClientFrameOf<'resume'>

/**
 * `new`: not sent. `asked`: sent, no answer. `reading`: the server answers. `healing`: the connection was lost in mid-answer, and
 * the server was asked to go on. `checking`: it was lost before the answer, and the server was asked whether it writes one.
 * `stopping`: the person wants no more of it, and the server does not know. `over`.
 */
type RequestState = 'new' | 'asked' | 'reading' | 'healing' | 'checking' | 'stopping' | 'over'

/** One answer that a chat asked for. */
export class LiveRequest {
  /** The name on the wire. One that is sent again has another. */
  id = crypto.randomUUID()
  readonly chatId: string
  readonly frame: RequestFrame
  /** The answers of the person that travel with it. */
  readonly answered: readonly string[]
  /** The stream when the server has taken the request; nothing when there was nothing to resume. */
  readonly opened: Promise<AdkChunkStream | undefined>
  state: RequestState = 'new'
  messageId: string | undefined
  readonly #queue: ChunkQueue
  #spool: ChunkSpool | undefined
  #sequence = 0
  #open: (stream: AdkChunkStream | undefined) => void = () => undefined
  #refuse: (error: unknown) => void = () => undefined

  constructor(
    frame: RequestFrame,
    answered: readonly string[],
    hooks: { before: BeforeChunk; onCancel: (request: LiveRequest) => void },
  ) {
    this.chatId = frame.id
    this.frame = frame
    this.answered = answered
    this.#queue = new ChunkQueue(hooks.before, () => hooks.onCancel(this))
    this.opened = new Promise((resolve, reject) => {
      this.#open = resolve
      this.#refuse = reject
    })
    this.opened.catch(() => undefined)
  }

  get stream(): AdkChunkStream {
    return this.#queue.stream
  }

  /** The frame under a name of its own. */
  named(type: 'as-asked' | 'resume'): RequestFrame {
    this.id = crypto.randomUUID()
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
    if (this.#spool) this.#spool.push(chunk)
    else this.#queue.push(chunk)
    return true
  }

  /** Gives the chat a chunk that is not the server's. */
  inject(chunk: Chunk): void {
    this.#queue.push(chunk)
  }

  /** Ends the stream for its chat; what still comes goes to whoever reads what is given back. */
  divert(): ChunkSpool {
    this.#queue.close()
    this.#spool ??= new ChunkSpool()
    return this.#spool
  }

  /** Whether a chat reads it. */
  get isRead(): boolean {
    return this.state !== 'over' && this.state !== 'stopping' && !this.#spool
  }

  end(): void {
    this.state = 'over'
    this.#open(undefined)
    this.#queue.close()
    this.#spool?.close()
  }

  fail(error: unknown): void {
    this.state = 'over'
    this.#refuse(error)
    this.#queue.fail(error)
    this.#spool?.close()
  }
}

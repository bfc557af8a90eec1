import { serialiseChunk } from '../protocol/chunk.ts'
import type { Attachment, Sink } from './attachment.ts'
import type { ReadFrom, TurnLogLimits } from './turn-log.ts'
import { TurnLog } from './turn-log.ts'

export interface TurnOptions extends TurnLogLimits {
  /** Whether the turn goes on with nobody waiting for it, by a decision from elsewhere. Default false. */
  readonly background?: boolean
  /** How long a turn goes on when nobody reads it any more. */
  readonly disconnectGraceMs: number
}

/** The making of one assistant message. It outlives the connections that read it. */
export class Turn {
  readonly messageId: string
  readonly background: boolean
  readonly log: TurnLog
  readonly #abort = new AbortController()
  readonly #graceMs: number
  #grace: NodeJS.Timeout | undefined
  /** Resolves when the turn has left the chat ready for the next one. Never rejects. */
  readonly settled: Promise<void>
  #settle: () => void = () => undefined

  constructor(messageId: string, options: TurnOptions) {
    this.messageId = messageId
    this.background = options.background === true
    this.log = new TurnLog(options)
    this.log.onUnwatched = () => this.#waitForReader()
    this.#graceMs = options.disconnectGraceMs
    this.settled = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  /** Aborted when the turn is stopped. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Reads the turn from its start, or for the client that answered it, from a pause on. */
  attach(sink: Sink, from: ReadFrom = 'start'): Attachment | undefined {
    clearTimeout(this.#grace)
    // The client goes on with the message it has; the id says which one.
    if (!this.log.isFromStart(from))
      sink.write(serialiseChunk({ type: 'start', messageId: this.messageId }))
    return this.log.attach(sink, from)
  }

  /** Stops the model and the tools; what was told so far stands. */
  stop(): void {
    clearTimeout(this.#grace)
    this.#abort.abort()
  }

  /** The session is in order; the next turn may begin. */
  settle(): void {
    clearTimeout(this.#grace)
    this.#settle()
  }

  // TU5: a stock client's stop() and a lost connection look alike: the response is closed. The grace period decides which of
  // the two is meant; without one, both stop the model at once.
  #waitForReader(): void {
    if (this.log.ended) return
    if (this.#graceMs <= 0) this.stop()
    else this.#grace = setTimeout(() => this.stop(), this.#graceMs)
  }
}

import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

import { serialiseChunk } from '../protocol/chunk.ts'
import type { ErrorCode } from '../protocol/error-codes.ts'
import type { ChatPositions } from '../protocol/sse.ts'
import type { TurnPosition } from '../protocol/turn-position.ts'
import type { Deferred } from '../shared/async.ts'
import { defer } from '../shared/async.ts'
import type { LogReader, Sink } from './log-reader.ts'
import type { ReadFrom, TurnLogLimits } from './turn-log.ts'
import { isPosition, TurnLog } from './turn-log.ts'

interface TurnOptions {
  /** The id of the turn of another server that this one is a copy of. Default: a new id. */
  readonly id?: string
  /** Whether no client requested the turn, for example after a decision in another client. Default false. */
  readonly background?: boolean
  /** How long the turn runs without a reader. */
  readonly graceMs: number
  /** The turn that ended at a question, if this one continues its run. */
  readonly before?: Turn
}

/** A new message waits this long for the readers of the running turn to disconnect, before it counts as a second message. */
const READER_GRACE_MS = 250

const CLOSING = new DOMException('The server closes.', 'AbortError')

/** Whether a turn was stopped because the server closes, and not by a person. */
export function isClosing({ reason }: AbortSignal): boolean {
  return reason === CLOSING
}

/** A user message with the id that its client has given it. */
export interface IdentifiedMessage {
  readonly id: string
  readonly content: unknown
}

/** One assistant message being produced. It outlives the connections that read it. */
export class Turn {
  /** Identifies the log, on all servers. */
  readonly id: string
  /** Whether another server runs the turn. */
  readonly isCopy: boolean
  readonly messageId: string
  /** The user message that the turn replies to, if it can be sent again. */
  repliesTo: IdentifiedMessage | undefined
  /** The id of the user message that the turn replies to. A copy does not know it. */
  userMessageId: string | undefined
  /** Whether the turn only streams a stored message again. */
  isReplay = false
  readonly background: boolean
  readonly log: TurnLog
  readonly #abort: AbortController
  readonly #graceMs: number
  #grace: NodeJS.Timeout | undefined
  readonly #settled: Deferred<void>
  readonly #next = defer<Turn | undefined>()
  /** The question of an MCP server at which the log has ended although the run continues. Set before the log ends. */
  asking: string | undefined
  /** Whether a reader asks for `positions`. Set before the log ends. */
  wantsPosition = false
  /** The position of the chat when the turn had locked it. Undefined if nothing has read the chat then. */
  startPosition: string | undefined
  /** The position of the chat for a client that had `startPosition` and has read the turn. Set before the log ends. */
  endPosition: string | undefined
  /** The code of the error with which the run ended. */
  failure: ErrorCode | undefined

  /** All turns share the object of the limits. */
  constructor(messageId: string, limits: TurnLogLimits, options: TurnOptions) {
    const { id, background = false, graceMs, before } = options
    this.id = id ?? randomUUID()
    this.isCopy = id !== undefined
    this.messageId = messageId
    this.#abort = before ? before.#abort : new AbortController()
    this.#settled = before ? before.#settled : defer()
    if (before) before.#next.resolve(this)
    this.repliesTo = before?.repliesTo
    this.userMessageId = before?.userMessageId
    this.background = background
    this.log = new TurnLog(limits)
    this.log.onUnwatched = () => this.#waitForReader()
    this.#graceMs = graceMs
  }

  /** Resolves when the chat is ready for the next turn. Never rejects. */
  get settled(): Promise<void> {
    return this.#settled.promise
  }

  /** Resolves with the turn that continues the run after the question, or with undefined if the run has ended. */
  get next(): Promise<Turn | undefined> {
    return this.#next.promise
  }

  /** Whether the turn writes a message, or the reply to it. */
  isOf(messageId: string): boolean {
    return messageId === this.messageId || messageId === this.userMessageId
  }

  /** Aborted when the turn is stopped. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** PO4: the positions of the chat before and after the turn. Undefined if they are not known, or no reader asked for them. */
  get positions(): ChatPositions | undefined {
    const { startPosition: before, endPosition: after } = this
    return before === undefined || after === undefined ? undefined : { before, after }
  }

  /** Reads the turn from its start, or from a pause or a position for a client that has the part before it. */
  attach(sink: Sink, from: ReadFrom = 'start'): LogReader | undefined {
    clearTimeout(this.#grace)
    // The client continues the message that it has. The id identifies it. A client with a position continues the stream.
    if (!this.log.isFromStart(from) && !isPosition(from))
      sink.write(serialiseChunk({ type: 'start', messageId: this.messageId }))
    return this.log.attach(sink, from)
  }

  /** PO7: returns where a client continues to read after a position. Returns undefined if this turn does not have the position. */
  findPosition(after: TurnPosition): ReadFrom | undefined {
    if (after.turnId !== this.id || !this.log.replayable) return undefined
    const position = this.log.findPosition(after, { mayGrow: this.isCopy })
    return position && { position }
  }

  /** Whether the turn has no reader, or loses its last one very soon: a client may still be disconnecting. */
  async becomesUnwatched(): Promise<boolean> {
    if (this.log.watched)
      await Promise.race([this.settled, delay(READER_GRACE_MS, undefined, { ref: false })])
    return !this.log.watched
  }

  /** Stops the model and the tools. Chunks that were streamed stay valid. */
  stop(): void {
    clearTimeout(this.#grace)
    this.#abort.abort()
  }

  /** Stops like `stop`, because the server closes. Another server may continue the turn. */
  leave(): void {
    clearTimeout(this.#grace)
    this.#abort.abort(CLOSING)
  }

  /** Marks the turn as settled. The next turn may start. */
  settle(): void {
    clearTimeout(this.#grace)
    this.#next.resolve(undefined)
    this.#settled.resolve()
  }

  // TU5: a stock client's stop() and a lost connection look the same: the response is closed. With a grace period, the turn stops
  // if no reader returns in time. Without one, it stops at once.
  #waitForReader(): void {
    if (this.log.ended) return
    if (this.#graceMs <= 0) this.stop()
    else this.#grace = setTimeout(() => this.stop(), this.#graceMs)
  }
}

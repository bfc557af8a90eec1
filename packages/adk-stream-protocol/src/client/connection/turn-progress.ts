import { type Chunk, isDelta } from '../../protocol/chunk.ts'
import type { ChatPositions } from '../../protocol/sse.ts'

/** What a chat has read of a turn when its stream ends. */
export interface StreamEnd {
  /** The id of the turn. Undefined if nothing of it was read. */
  readonly turn?: string | undefined
  /** Undefined if the stream was not read to its end. */
  readonly positions?: ChatPositions | undefined
}

/** How much of a turn was received (PO6). Continuing after it, the server sends exactly the rest (PO7). */
export class TurnProgress {
  #entry: string | undefined
  /** The characters that were received of an entry that grows. */
  #offset: number | undefined

  /** Records a chunk. `entry` is its position on the wire, which further deltas of the same text do not have. */
  add(chunk: Chunk, entry: string | undefined): void {
    if (entry !== undefined && entry !== this.#entry) {
      this.#entry = entry
      this.#offset = isDelta(chunk) ? 0 : undefined
    }
    if (this.#offset !== undefined && isDelta(chunk)) this.#offset += chunk.delta.length
  }

  /** The position to continue after. Undefined if nothing was received. */
  get current(): string | undefined {
    return this.#offset === undefined ? this.#entry : `${this.#entry}:${this.#offset}`
  }

  get turn(): string | undefined {
    return this.#entry?.split(':', 1)[0]
  }
}

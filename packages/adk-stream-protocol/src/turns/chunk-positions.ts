import type { ChatPositions } from '../protocol/sse.ts'
import { entryPosition } from '../protocol/turn-position.ts'
import { isPosition, type ReadFrom } from './turn-log.ts'
import type { Turn } from './turn.ts'

/** The positions of a turn, for a reader that has asked for them. */
export class ChunkPositions {
  readonly #turn: Turn
  #entry: number | undefined

  constructor(turn: Turn, from: ReadFrom) {
    this.#turn = turn
    turn.wantsPosition = true
    // A client that continues inside an entry has received its position.
    if (isPosition(from) && from.position.offset > 0) this.#entry = from.position.entry
  }

  /** PO6: returns the position of a chunk if it begins another entry than that of the chunk before it. */
  next(entry: number | undefined): string | undefined {
    if (entry === undefined || entry === this.#entry) return undefined
    this.#entry = entry
    return entryPosition(this.#turn.id, entry)
  }

  /** PO4: the positions of the chat before and after the turn, when it has ended. */
  get ofChat(): ChatPositions | undefined {
    return this.#turn.positions
  }
}

import type { SoundChunk } from '../protocol/chunk.ts'
import type { Position, TurnLog } from './turn-log.ts'

/** Where an attached client reads from: an SSE response, a socket. */
export interface Sink {
  /** Takes the JSON of one chunk. False when it wants no more until it has drained. */
  write(json: string): boolean
  /** Takes a piece of sound, or drops it: there is no other moment for it than now. */
  pass?(sound: SoundChunk): void
  /** The turn is over and everything was written. */
  end(): void
  /** The client was let go before the end; it may resume. */
  abandon(): void
}

export interface AttachmentContext {
  readonly log: TurnLog
  readonly stallTimeoutMs: number
  readonly onGone: () => void
  readonly onRoom: () => void
}

type State =
  /** Gets every chunk as it is made. */
  | { readonly name: 'live' }
  /** Wants no more for now; will read on from `at`. */
  | { readonly name: 'lagging'; readonly at: Position; readonly stall: NodeJS.Timeout }
  | { readonly name: 'gone' }

/** One client reading one turn. */
export class Attachment {
  readonly #sink: Sink
  readonly #context: AttachmentContext
  #state: State = { name: 'live' }
  #lag = 0

  constructor(sink: Sink, context: AttachmentContext) {
    this.#sink = sink
    this.#context = context
  }

  /** Characters made since this reader stopped taking them. */
  get lag(): number {
    return this.#lag
  }

  get lagging(): boolean {
    return this.#state.name === 'lagging'
  }

  /** Gives a chunk that was just appended. */
  offer(json: string): void {
    if (this.#state.name === 'lagging') this.#lag += json.length
    else if (this.#state.name === 'live' && !this.#sink.write(json))
      this.#fallBehind(this.#context.log.tip)
  }

  /** Gives sound to a reader that keeps up; for another one it would come too late. */
  pass(sound: SoundChunk): void {
    if (this.#state.name === 'live') this.#sink.pass?.(sound)
  }

  /** Reads from a place on. */
  catchUp(from: Position): void {
    this.#readFrom(from)
  }

  /** The sink can take more. */
  drained(): void {
    if (this.#state.name !== 'lagging') return
    const { at, stall } = this.#state
    clearTimeout(stall)
    this.#state = { name: 'live' }
    this.#lag = 0
    this.#readFrom(at)
    this.#context.onRoom()
  }

  /** The log has ended. */
  finish(): void {
    if (this.#state.name !== 'live') return
    this.#leave()
    this.#sink.end()
  }

  /** Lets the client go: it closed, or it is too slow. */
  detach(reason: 'closed' | 'slow'): void {
    if (this.#state.name === 'gone') return
    this.#leave()
    if (reason === 'slow') this.#sink.abandon()
  }

  #readFrom(start: Position): void {
    const { log } = this.#context
    let at = start
    for (let found = log.read(at); found; found = log.read(at)) {
      at = found.next
      if (!this.#sink.write(found.json)) {
        this.#fallBehind(at)
        return
      }
    }
    if (log.ended) this.finish()
  }

  #fallBehind(at: Position): void {
    const stall = setTimeout(() => this.detach('slow'), this.#context.stallTimeoutMs)
    this.#state = { name: 'lagging', at, stall }
  }

  #leave(): void {
    if (this.#state.name === 'lagging') clearTimeout(this.#state.stall)
    this.#state = { name: 'gone' }
    this.#context.onGone()
  }
}

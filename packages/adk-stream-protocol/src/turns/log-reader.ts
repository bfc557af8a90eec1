import type { AudioChunk } from '../protocol/chunk.ts'

/** The client side of a reader: an SSE response or a socket. */
export interface Sink {
  /** Writes the JSON of one chunk. Returns false if the sink is full until it drains. */
  write(json: string): boolean
  /** Called before chunks that belong together. The sink may keep them until `flush` and send them in one piece. */
  hold?(): void
  /** Sends what was kept since `hold`. Returns false if the sink is full until it drains. */
  flush?(): boolean
  /** Writes a piece of audio, or drops it. Audio is never sent later. */
  pass?(sound: AudioChunk): void
  /** Called when the turn has ended and everything was written. */
  end(): void
  /** Called when the reader was detached before the end. The client may resume. */
  abandon(): void
}

/** A position in the log: the entry, and the offset in it if it holds deltas. */
export interface Position {
  readonly entry: number
  readonly offset: number
}

/** The log that a reader reads. */
interface ReadableLog {
  readonly ended: boolean
  /** The position after the last chunk. */
  readonly tip: Position
  /** Returns the JSON of the chunk at a position, and the position after it. Returns undefined at the tip. */
  read(at: Position): { readonly json: string; readonly next: Position } | undefined
}

interface LogReaderOptions {
  readonly log: ReadableLog
  readonly stallTimeoutMs: number
  readonly onGone: () => void
  readonly onRoom: () => void
}

type State =
  /** Receives every chunk at once. */
  | { readonly name: 'live' }
  /** The sink is full. Reading continues at `at`. */
  | { readonly name: 'lagging'; readonly at: Position; readonly stall: NodeJS.Timeout }
  | { readonly name: 'gone' }

/** One client that reads one turn. */
export class LogReader {
  readonly #sink: Sink
  readonly #options: LogReaderOptions
  #state: State = { name: 'live' }
  #lag = 0

  constructor(sink: Sink, options: LogReaderOptions) {
    this.#sink = sink
    this.#options = options
  }

  /** Characters appended since the sink was full. */
  get lag(): number {
    return this.#lag
  }

  get lagging(): boolean {
    return this.#state.name === 'lagging'
  }

  /** Passes on a chunk that was just appended. */
  offer(json: string): void {
    if (this.#state.name === 'lagging') this.#lag += json.length
    else if (this.#state.name === 'live' && !this.#sink.write(json))
      this.#fallBehind(this.#options.log.tip)
  }

  /** Called before chunks that belong together. */
  hold(): void {
    if (this.#state.name === 'live') this.#sink.hold?.()
  }

  /** Called after chunks that belong together. */
  flush(): void {
    if (this.#state.name === 'live' && this.#sink.flush?.() === false)
      this.#fallBehind(this.#options.log.tip)
  }

  /** Passes audio on if the reader keeps up. Otherwise it would come too late. */
  pass(sound: AudioChunk): void {
    if (this.#state.name === 'live') this.#sink.pass?.(sound)
  }

  /** Reads from a position to the end of the log. */
  catchUp(from: Position): void {
    this.#readFrom(from)
  }

  /** Called when the sink can take more. */
  drained(): void {
    if (this.#state.name !== 'lagging') return
    const { at, stall } = this.#state
    clearTimeout(stall)
    this.#state = { name: 'live' }
    this.#lag = 0
    this.#readFrom(at)
    this.#options.onRoom()
  }

  /** Called when the log has ended. */
  finish(): void {
    if (this.#state.name !== 'live') return
    this.#leave()
    this.#sink.end()
  }

  /** Detaches the client: its connection closed, or it is too slow. */
  detach(reason: 'closed' | 'slow'): void {
    if (this.#state.name === 'gone') return
    this.#leave()
    if (reason === 'slow') this.#sink.abandon()
  }

  #readFrom(start: Position): void {
    const { log } = this.#options
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
    const detach = (): void => {
      if (this.#state === lagging) this.detach('slow')
    }
    // TU355: after a pause of the process the timer is due before the sockets are polled. The immediate comes after them.
    const stall = setTimeout(() => setImmediate(detach), this.#options.stallTimeoutMs)
    const lagging: State = { name: 'lagging', at, stall }
    this.#state = lagging
  }

  #leave(): void {
    if (this.#state.name === 'lagging') clearTimeout(this.#state.stall)
    this.#state = { name: 'gone' }
    this.#options.onGone()
  }
}

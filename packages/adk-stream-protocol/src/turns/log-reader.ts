import type { AudioChunk } from '../protocol/chunk.ts'

/** The client side of a reader: an SSE response or a socket. */
export interface Sink {
  /**
   * Writes the JSON of one chunk. `entry` is its number in the log, and undefined for a chunk that is not in the log. `text` is the JSON of
   * a delta's text: a sink that writes its own frames need not search for it in the chunk. Returns false if the sink is full until it drains.
   */
  write(json: string, entry?: number, text?: string): boolean
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
  /** Returns the chunk at a position. Returns undefined at the tip. */
  read(at: Position): ReadChunk | undefined
  /** Returns the chunk at a position like `read`, but leaves out those that later ones have superseded. */
  readCurrent(at: Position): ReadChunk | undefined
}

/** A chunk of the log. */
export interface ReadChunk {
  readonly json: string
  /** The JSON of the text, if the chunk is a delta. */
  readonly text?: string
  /** The entry that the chunk is a part of. */
  readonly entry: number
  /** The position after the chunk. */
  readonly next: Position
}

interface LogReaderOptions {
  readonly log: ReadableLog
  /** Whether the reader receives chunks that later ones have superseded. */
  readonly readsAll: boolean
  readonly stallTimeoutMs: number
  readonly onGone: () => void
  readonly onRoom: () => void
}

type State =
  /** Receives every chunk at once. */
  | { readonly name: 'current' }
  /** The sink is full. Reading continues at `at`. */
  | { readonly name: 'lagging'; readonly at: Position; readonly stall: NodeJS.Timeout }
  /** The client has received more than the log contains. Reading continues when the log has reached `at`. */
  | { readonly name: 'ahead'; readonly at: Position }
  | { readonly name: 'gone' }

/** One client that reads one turn. */
export class LogReader {
  readonly #sink: Sink
  readonly #options: LogReaderOptions
  #state: State = { name: 'current' }
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

  /** Passes on a chunk that was just appended to an entry. */
  offer(json: string, entry: number, text?: string): void {
    if (this.#state.name === 'lagging') this.#lag += json.length
    else if (this.#state.name === 'ahead') this.catchUp(this.#state.at)
    else if (this.#state.name === 'current' && !this.#sink.write(json, entry, text))
      this.#fallBehind(this.#options.log.tip)
  }

  /** Called before chunks that belong together. */
  hold(): void {
    if (this.#state.name === 'current') this.#sink.hold?.()
  }

  /** Called after chunks that belong together. */
  flush(): void {
    if (this.#state.name === 'current' && this.#sink.flush?.() === false)
      this.#fallBehind(this.#options.log.tip)
  }

  /** Passes audio on if the reader keeps up. Otherwise it would come too late. */
  pass(sound: AudioChunk): void {
    if (this.#state.name === 'current') this.#sink.pass?.(sound)
  }

  /** Reads from a position to the end of the log. */
  catchUp(from: Position): void {
    const { log } = this.#options
    const isAhead = isAfter(from, log.tip)
    this.#state = isAhead ? { name: 'ahead', at: from } : { name: 'current' }
    if (!isAhead) this.#readFrom(from)
    else if (log.ended) this.finish()
  }

  /** Called when the sink can take more. */
  drained(): void {
    if (this.#state.name !== 'lagging') return
    const { at, stall } = this.#state
    clearTimeout(stall)
    this.#state = { name: 'current' }
    this.#lag = 0
    this.#readFrom(at)
    this.#options.onRoom()
  }

  /** Called when the log has ended. */
  finish(): void {
    if (this.#state.name !== 'current' && this.#state.name !== 'ahead') return
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
    const { log, readsAll } = this.#options
    const read = (at: Position) => (readsAll ? log.read(at) : log.readCurrent(at))
    let at = start
    for (let found = read(at); found; found = read(at)) {
      at = found.next
      if (!this.#sink.write(found.json, found.entry, found.text)) {
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
    // TU4: after a pause of the process the timer is due before the sockets are polled. The immediate comes after them.
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

function isAfter(one: Position, other: Position): boolean {
  return one.entry > other.entry || (one.entry === other.entry && one.offset > other.offset)
}

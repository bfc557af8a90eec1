import type { AppChatRef } from '../shared/chat-ref.ts'
import type { LogReader, Position, Sink } from '../turns/log-reader.ts'
import type { Turn } from '../turns/turn.ts'
import type { Relay, TurnUpdate } from './relay.ts'
import { markLine } from './relay.ts'

interface TurnPublisherOptions {
  readonly relay: Pick<Relay, 'write' | 'notify'>
  /** The name of this server. */
  readonly owner: string
  /** The interval between two writes while turns produce something. */
  readonly flushMs: number
  /** Called after each write with the age of the oldest content that it wrote, at most. */
  readonly onWritten?: ((lagMs: number) => void) | undefined
  readonly onError: (error: unknown) => void
}

/**
 * Writes the turns of this server to the relay: all of them together, at an interval. A chunk costs nothing here, because the turn log
 * keeps what was not written yet, with deltas joined.
 */
export class TurnPublisher {
  readonly #options: TurnPublisherOptions
  readonly #turns = new Map<string, PublishedTurn>()
  #timer: NodeJS.Timeout | undefined
  /** The time until the write that follows the present one. */
  #nextMs = 0
  #flushing: Promise<void> | undefined
  /** Content that is newer was not written yet. */
  #writtenAt = 0
  #isClosed = false

  constructor(options: TurnPublisherOptions) {
    this.#options = options
  }

  /** Publishes a turn until it ends. Call it before anything is written to the turn. */
  publish(chat: AppChatRef, turn: Turn): void {
    const published = new PublishedTurn(chat, turn)
    if (this.#turns.size === 0) this.#writtenAt = performance.now()
    this.#turns.set(turn.id, published)
    turn.log.onEnd = () => this.#schedule(0)
    this.#schedule()
  }

  /** Whether any turn is published. */
  get busy(): boolean {
    return this.#turns.size > 0
  }

  /** Returns a turn that has not been written to its end. */
  find(turnId: string): Turn | undefined {
    return this.#turns.get(turnId)?.turn
  }

  /** Sets which turns other servers read. A turn that is read elsewhere has a reader. */
  async setWatched(turnIds: ReadonlySet<string>): Promise<void> {
    const before = new Set([...this.#turns.values()].filter(({ isWatched }) => isWatched))
    for (const [turnId, published] of this.#turns) published.setWatched(turnIds.has(turnId))
    const added = [...this.#turns.values()].filter(
      (published) => published.isWatched && !before.has(published),
    )
    if (added.length === 0) return
    // The other server may have read the turn before the last write, about which it gets no hint.
    await this.#flushing
    await this.#options.relay.notify({ turns: added.map(({ turn }) => turn.id) })
  }

  /** Writes what is left, and stops. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#flushing
    await this.#flush()
  }

  /** Writes after the interval, or after a shorter time: other servers must learn of an end at once. */
  #schedule(ms = this.#options.flushMs): void {
    if (this.#isClosed || this.#turns.size === 0) return
    if (this.#flushing) {
      this.#nextMs = Math.min(ms, this.#nextMs)
      return
    }
    if (this.#timer && ms > 0) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#nextMs = this.#options.flushMs
      this.#flushing = this.#flush().finally(() => {
        this.#timer = undefined
        this.#flushing = undefined
        this.#schedule(this.#nextMs)
      })
    }, ms)
    this.#timer.unref()
  }

  async #flush(): Promise<void> {
    const { relay, owner, onWritten, onError } = this.#options
    const since = this.#writtenAt
    this.#writtenAt = performance.now()
    const updates = [...this.#turns.values()].flatMap((published) => published.nextUpdates())
    const unused = [...this.#turns].filter(([, published]) => published.isUnused)
    for (const [turnId] of unused) this.#turns.delete(turnId)
    if (updates.length === 0) return
    const turnIds = [...new Set(updates.map(({ turnId }) => turnId))]
    const watched = turnIds.filter((turnId) => this.#turns.get(turnId)?.isWatched === true)
    try {
      const stored = await relay.write(updates, { owner, watched })
      for (const turnId of turnIds) this.#written(turnId, stored.get(turnId))
      onWritten?.(performance.now() - since)
    } catch (error) {
      this.#writtenAt = since
      // The next flush writes the same updates again.
      onError(error)
    }
  }

  #written(turnId: string, seq: number | undefined): void {
    const published = this.#turns.get(turnId)
    // If another server has ended the turn, the next write to the session fails and ends it here (TU80).
    if (seq !== undefined && published?.confirm(seq) === 'running') return
    published?.setWatched(false)
    this.#turns.delete(turnId)
  }
}

/**
 * A turn of this server, and how much of it was written. The log keeps the content of all updates, so an update that the database has lost
 * is created again, however much later the loss is noticed.
 */
class PublishedTurn {
  readonly turn: Turn
  readonly #chat: AppChatRef
  /** The positions at which the updates end: entry and offset of each. Numbers take less memory than objects. */
  readonly #ends: number[] = []
  /** The marks of the log, in order. `seq` is the update that contains them. */
  readonly #marks: { readonly seq: number; readonly at: Position; readonly line: string }[] = []
  /** The number of the last update that is stored. */
  #stored = 0
  #wasReplayable = true
  /** Whether the last update ends the turn. */
  #isComplete = false
  #isWatched = false
  #remote: LogReader | undefined

  constructor(chat: AppChatRef, turn: Turn) {
    this.#chat = chat
    this.turn = turn
    turn.log.onMark = (id) => {
      this.#marks.push({ seq: this.#seq + 1, at: turn.log.tip, line: markLine(id) })
    }
  }

  get isWatched(): boolean {
    return this.#isWatched
  }

  /** Whether the turn has ended without anything to read. */
  get isUnused(): boolean {
    return this.turn.log.ended && this.#seq === 0
  }

  /** The number of the last update. */
  get #seq(): number {
    return this.#ends.length / 2
  }

  /** Returns the updates that are not stored: new content, or updates that were not confirmed or were lost. */
  nextUpdates(): readonly TurnUpdate[] {
    if (this.#stored === this.#seq) this.#addUpdate()
    const count = this.#seq - this.#stored
    return Array.from({ length: count }, (_, index) => this.#toUpdate(this.#stored + index + 1))
  }

  /** Takes the number of the last stored update. Returns whether the turn has been written to its end. */
  confirm(seq: number): 'running' | 'ended' {
    this.#stored = seq
    return this.#isComplete && seq === this.#seq ? 'ended' : 'running'
  }

  setWatched(isWatched: boolean): void {
    if (isWatched === this.#isWatched) return
    this.#isWatched = isWatched
    const reader = this.#remote
    this.#remote = isWatched ? this.turn.attach(ELSEWHERE) : undefined
    reader?.detach('closed')
  }

  /** Adds an update if there is something new. */
  #addUpdate(): void {
    const { ended, replayable, tip } = this.turn.log
    const last = this.#endOf(this.#seq)
    const isLonger = tip.entry !== last.entry || tip.offset !== last.offset
    const isMarked = this.#marks.at(-1)?.seq === this.#seq + 1
    const hasContent = replayable && (isLonger || isMarked)
    const isNews = (ended && this.#seq > 0) || replayable !== this.#wasReplayable
    if (!hasContent && !isNews) return
    this.#wasReplayable = replayable
    this.#isComplete = ended
    this.#ends.push(tip.entry, tip.offset)
  }

  #toUpdate(seq: number): TurnUpdate {
    const { id: turnId, messageId, log } = this.turn
    const { replayable } = log
    const lines = replayable ? this.#readLines(seq) : []
    const ended = this.#isComplete && seq === this.#seq
    return { turnId, chat: this.#chat, messageId, replayable, seq, lines, ended }
  }

  #readLines(seq: number): string[] {
    const { log } = this.turn
    const lines: string[] = []
    let at = this.#endOf(seq - 1)
    const readTo = (to: Position): void => {
      for (let found = log.read(at, to); found; found = log.read(at, to)) {
        at = found.next
        lines.push(found.json)
      }
    }
    for (const mark of this.#marks) {
      if (mark.seq !== seq) continue
      readTo(mark.at)
      lines.push(mark.line)
    }
    readTo(this.#endOf(seq))
    return lines
  }

  #endOf(seq: number): Position {
    const [entry = 0, offset = 0] = this.#ends.slice(2 * seq - 2, 2 * seq)
    return { entry, offset }
  }
}

/** Represents the readers on other servers. They have logs of their own, so this sink is never full. */
const ELSEWHERE: Sink = {
  write: () => true,
  end: () => undefined,
  abandon: () => undefined,
}

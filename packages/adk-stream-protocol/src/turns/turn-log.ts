import type { Chunk, DeltaChunk, SoundChunk, TextKind } from '../protocol/chunk.ts'
import { isDelta, serialiseChunk } from '../protocol/chunk.ts'
import type { Sink } from './attachment.ts'
import { Attachment } from './attachment.ts'
import { DeltaRun } from './delta-run.ts'

export interface TurnLogLimits {
  /** How far a reader may fall behind another one before it is detached, in characters. */
  readonly maxLag: number
  /** How long a reader may take nothing before it is detached. */
  readonly stallTimeoutMs: number
  /** How much of a turn is kept for replay, in characters. A longer turn goes on, but cannot be resumed. */
  readonly maxReplay: number
}

/** Where a client reads from: the first chunk, the last pause, or the pause after an approval that it has seen asked. */
export type ReadFrom = 'start' | 'pause' | { readonly after: string }

/** How far ahead of its only reader a turn may run before it pauses, in characters. */
const PAUSE_LAG = 65_536

/** A place in the log: the entry, and how far into it if it is a run of deltas. */
export interface Position {
  readonly entry: number
  readonly offset: number
}

/** How much sound is kept for the first reader, in pieces of some 80 ms. */
const MAX_EARLY = 25

const START: Position = { entry: 0, offset: 0 }

/**
 * The append-only log of one turn. Every chunk is serialised once and goes to all readers that keep up; a reader that does not
 * catches up from the log, with deltas joined. Readers hold no queue of their own, so memory is the turn, once.
 */
export class TurnLog {
  readonly #limits: TurnLogLimits
  readonly #attachments = new Set<Attachment>()
  #entries: (string | DeltaRun)[] = []
  /** Entries that are no longer kept; positions count them. */
  #dropped = 0
  #size = 0
  #state: 'open' | 'ended' = 'open'
  #replayable = true
  #awaited = true
  /** Sound from before the first reader came. */
  readonly #early: SoundChunk[] = []
  #pause = START
  readonly #marks = new Map<string, Position>()
  #roomWaiters: (() => void)[] = []
  /** Called when the last reader has gone. */
  onUnwatched: () => void = () => undefined

  constructor(limits: TurnLogLimits) {
    this.#limits = limits
  }

  get ended(): boolean {
    return this.#state === 'ended'
  }

  /** Whether the turn can still be read from its first chunk on. */
  get replayable(): boolean {
    return this.#replayable
  }

  /** Whether somebody reads the turn, or is about to: who began it has not come yet. */
  get watched(): boolean {
    return this.#awaited || this.#attachments.size > 0
  }

  /** True when no reader can take more: the producer should wait for `room()`. */
  get congested(): boolean {
    if (this.#attachments.size === 0) return false
    for (const attachment of this.#attachments) if (attachment.lag < PAUSE_LAG) return false
    return true
  }

  /** Resolves when a reader can take more, or none is left. */
  async room(): Promise<void> {
    while (this.congested && !this.ended) {
      await new Promise<void>((resolve) => this.#roomWaiters.push(resolve))
    }
  }

  append(chunk: Chunk): void {
    const json = isDelta(chunk)
      ? this.#appendDelta(chunk)
      : this.#appendEntry(serialiseChunk(chunk))
    this.#size += json.length
    if (this.#size > this.#limits.maxReplay) this.#replayable = false
    const crowded = this.#attachments.size > 1
    for (const attachment of this.#attachments) {
      attachment.offer(json)
      if (crowded && attachment.lag > this.#limits.maxLag) attachment.detach('slow')
    }
    if (!this.#replayable) this.#dropRead()
  }

  /** Gives sound to those who read now. It is not kept for later, but for a first reader who is on the way. */
  pass(sound: SoundChunk): void {
    if (this.#awaited && this.#early.length < MAX_EARLY) this.#early.push(sound)
    for (const attachment of this.#attachments) attachment.pass(sound)
  }

  /** No chunk follows; readers end when they have read all. */
  end(): void {
    this.#state = 'ended'
    for (const attachment of this.#attachments) attachment.finish()
    this.#wakeRoom()
  }

  /** Remembers this place: a client that answered what the turn waited for, or this approval or call, has seen all before it. */
  markPause(id?: string): void {
    if (id === undefined) this.#pause = this.tip
    else this.#marks.set(id, this.tip)
  }

  /** Whether the place behind a question or a call is known. */
  isMarked(id: string): boolean {
    return this.#marks.has(id)
  }

  /** Whether a reader gets the first chunk. */
  isFromStart(from: ReadFrom): boolean {
    return this.#placeOf(from) === START
  }

  /** Reads the turn from a place on. Refused for a turn too long to be replayed. */
  attach(sink: Sink, from: ReadFrom = 'start'): Attachment | undefined {
    this.#awaited = false
    if (!this.#replayable) return undefined
    const attachment = new Attachment(sink, {
      log: this,
      stallTimeoutMs: this.#limits.stallTimeoutMs,
      onGone: () => {
        this.#attachments.delete(attachment)
        this.#wakeRoom()
        if (this.#attachments.size === 0) this.onUnwatched()
      },
      onRoom: () => this.#wakeRoom(),
    })
    this.#attachments.add(attachment)
    attachment.catchUp(this.#placeOf(from))
    for (const sound of this.#early.splice(0)) attachment.pass(sound)
    return attachment
  }

  #placeOf(from: ReadFrom): Position {
    if (from === 'start') return START
    return (from === 'pause' ? undefined : this.#marks.get(from.after)) ?? this.#pause
  }

  /** The place behind the last chunk. */
  get tip(): Position {
    const last = this.#entries.at(-1)
    return last instanceof DeltaRun
      ? { entry: this.#dropped + this.#entries.length - 1, offset: last.length }
      : { entry: this.#dropped + this.#entries.length, offset: 0 }
  }

  /** The JSON of the chunk at a place, and the place behind it; nothing at the tip. */
  read({
    entry,
    offset,
  }: Position): { readonly json: string; readonly next: Position } | undefined {
    const found = this.#entries[entry - this.#dropped]
    if (found === undefined) return undefined
    if (typeof found === 'string') return { json: found, next: { entry: entry + 1, offset: 0 } }
    if (offset < found.length) {
      const { json, end } = found.frameFrom(offset)
      return { json, next: { entry, offset: end } }
    }
    return this.read({ entry: entry + 1, offset: 0 })
  }

  /** The prose streamed so far in a part. */
  textOf(kind: TextKind, id: string): string {
    const chunk = { type: `${kind}-delta`, id, delta: '' } as const
    const run = this.#entries.findLast(
      (entry) => entry instanceof DeltaRun && entry.belongsTo(chunk),
    )
    return run instanceof DeltaRun ? run.text : ''
  }

  #appendDelta(chunk: DeltaChunk): string {
    const last = this.#entries.at(-1)
    if (last instanceof DeltaRun && last.belongsTo(chunk)) return last.add(chunk.delta)
    const run = new DeltaRun(chunk.type, chunk.id)
    this.#entries.push(run)
    return run.add(chunk.delta)
  }

  #appendEntry(json: string): string {
    this.#entries.push(json)
    return json
  }

  // A turn too long to be replayed is kept only as far as a reader still has to catch up.
  #dropRead(): void {
    for (const attachment of this.#attachments) if (attachment.lagging) return
    this.#dropped += this.#entries.length
    this.#entries = []
  }

  #wakeRoom(): void {
    for (const wake of this.#roomWaiters.splice(0)) wake()
  }
}

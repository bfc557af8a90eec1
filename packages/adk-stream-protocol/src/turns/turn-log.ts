import { readOffer } from '../protocol/call-offers.ts'
import type { AudioChunk, Chunk, DeltaChunk, TextKind } from '../protocol/chunk.ts'
import { deltaHead, isDelta, isResult, serialiseChunk } from '../protocol/chunk.ts'
import type { TurnPosition } from '../protocol/turn-position.ts'
import type { Position, ReadChunk, Sink } from './log-reader.ts'
import { LogReader } from './log-reader.ts'

export interface TurnLogLimits {
  /** How far a reader may fall behind another one before it is detached, in characters. */
  readonly maxLag: number
  /** How long a reader's sink may stay full before the reader is detached. */
  readonly stallTimeoutMs: number
  /** How much of a turn is kept for replay, in characters. A longer turn continues, but cannot be resumed. */
  readonly maxReplay: number
}

/**
 * Where a client starts to read: at the first chunk, at the last pause, after an approval or call that it has seen, or at the position up
 * to which it has received everything.
 */
export type ReadFrom =
  | 'start'
  | 'pause'
  | { readonly after: string }
  | { readonly position: Position }

/** Whether a client continues at a position. */
export function isPosition(from: ReadFrom): from is { readonly position: Position } {
  return typeof from === 'object' && 'position' in from
}

/** How far a turn may run ahead of its fastest reader before it waits, in characters. */
const PAUSE_LAG = 65_536

/** How much audio is kept for the first reader, in pieces of about 80 ms. */
const MAX_EARLY = 25

export const START: Position = { entry: 0, offset: 0 }

/**
 * The append-only log of one turn. Every chunk is serialised once and passed to all readers that keep up. A slower reader catches up from
 * the log, with deltas joined. Readers have no queues, so a turn is in memory once.
 */
export class TurnLog {
  readonly #limits: TurnLogLimits
  readonly #readers = new Set<LogReader>()
  #entries: (string | DeltaBuffer)[] = []
  /** The number of entries that were dropped. Positions count them. */
  #dropped = 0
  #size = 0
  #state: 'open' | 'ended' = 'open'
  #replayable = true
  #awaited = true
  #isAbandoned = false
  /** Audio from before the first reader. */
  readonly #early: AudioChunk[] = []
  #pause = START
  /** The positions after approvals and calls. Most turns have none. */
  #marks: Map<string, Position> | undefined
  /** The offers of calls without a result, and the requests for calls that are not approved. Most turns have none. */
  #open: OpenEntry[] | undefined
  /** The offers and requests that were open before. A reader from the start does not receive them. */
  #superseded: Set<number> | undefined
  #roomWaiters: (() => void)[] = []
  /** Called when the last reader has detached. */
  onUnwatched: () => void = () => undefined
  /** Called when the log has ended. */
  onEnd: () => void = () => undefined
  /** Called when a position is marked. */
  onMark: (id: string | undefined) => void = () => undefined

  constructor(limits: TurnLogLimits) {
    this.#limits = limits
  }

  get ended(): boolean {
    return this.#state === 'ended'
  }

  /** Whether the turn can still be read from its first chunk. */
  get replayable(): boolean {
    return this.#replayable
  }

  /** Whether the turn has a reader, or the client that started it has not attached yet. */
  get watched(): boolean {
    return this.#awaited || this.#readers.size > 0
  }

  /** Whether the turn has a reader now. */
  get hasReaders(): boolean {
    return this.#readers.size > 0
  }

  /** Whether no reader can take more. Then the producer should await `room()`. */
  get congested(): boolean {
    if (this.#readers.size === 0) return false
    for (const reader of this.#readers) if (reader.lag < PAUSE_LAG) return false
    return true
  }

  /** Resolves when a reader can take more, or none is left. */
  async room(): Promise<void> {
    while (this.congested && !this.ended) {
      await new Promise<void>((resolve) => this.#roomWaiters.push(resolve))
    }
  }

  append(chunk: Chunk): void {
    if (isDelta(chunk)) {
      const text = JSON.stringify(chunk.delta)
      this.#offer(`${this.#appendDelta(chunk)}${text}}`, text)
    } else this.#offer(this.#appendEntry(chunk))
  }

  /** Passes what was just appended on to the readers. */
  #offer(json: string, text?: string): void {
    this.#size += json.length
    if (this.#size > this.#limits.maxReplay) this.#replayable = false
    const entry = this.#dropped + this.#entries.length - 1
    const crowded = this.#readers.size > 1
    for (const reader of this.#readers) {
      reader.offer(json, entry, text)
      if (crowded && reader.lag > this.#limits.maxLag) reader.detach('slow')
    }
    if (!this.#replayable) this.#dropRead()
  }

  /** Appends what `write` writes. Sinks may send it in one piece. */
  appendTogether(write: () => void): void {
    for (const reader of this.#readers) reader.hold()
    write()
    for (const reader of this.#readers) reader.flush()
  }

  /** Passes audio to the present readers. It is kept only for a first reader that has not attached yet. */
  pass(sound: AudioChunk): void {
    if (this.#awaited && this.#early.length < MAX_EARLY) this.#early.push(sound)
    for (const reader of this.#readers) reader.pass(sound)
  }

  /** Ends the log. Readers end when they have read everything. */
  end(): void {
    this.#state = 'ended'
    for (const reader of this.#readers) reader.finish()
    this.#wakeRoom()
    this.onEnd()
  }

  /** Detaches all readers before the end, and those that attach later. Their clients may resume. */
  abandon(): void {
    this.#isAbandoned = true
    for (const reader of this.#readers) reader.detach('slow')
  }

  /** Takes over what a turn wrote before the question at which it ended. A client that answers continues to read here. */
  continueFrom(before: TurnLog, question: string): void {
    if (!before.replayable) this.#replayable = false
    let at = START
    for (let found = before.read(at); found; found = before.read(at)) {
      for (const [id, position] of before.#marks ?? [])
        if (position.entry === at.entry && at.offset === 0) this.markPause(id)
      at = found.next
      // The log contains what this library has written.
      const chunk = JSON.parse(found.json) as Chunk
      if (chunk.type !== 'finish') this.append(chunk)
    }
    this.markPause(question)
    this.markPause()
  }

  /** Marks the current position. A client that responds to the pause, approval or call has read everything before it. */
  markPause(id?: string): void {
    if (id === undefined) this.#pause = this.tip
    else (this.#marks ??= new Map()).set(id, this.tip)
    this.onMark(id)
  }

  /** Whether the position after an approval or a call is marked. */
  isMarked(id: string): boolean {
    return this.#marks?.has(id) === true
  }

  /** The approvals that a reader from the start is asked for. */
  get requests(): string[] {
    return (this.#open ?? []).flatMap(({ type, id }) => (type === 'request' ? id : []))
  }

  /** CV798: leaves the request for a call that was approved out for readers from the start. */
  supersedeRequest(approvalId: string): void {
    this.#supersede('request', approvalId)
  }

  /**
   * Returns where a client continues to read after a position. Returns undefined if the log does not contain the position, unless it
   * `mayGrow`: the copy of a turn may contain less than a client has received from the original.
   */
  findPosition(
    { entry, offset }: Omit<TurnPosition, 'turnId'>,
    { mayGrow }: { readonly mayGrow: boolean },
  ): Position | undefined {
    const index = entry - this.#dropped
    const found = this.#entries[index]
    const at = offset === undefined ? { entry: entry + 1, offset: 0 } : { entry, offset }
    if (found === undefined) return mayGrow && index >= this.#entries.length ? at : undefined
    if (offset === undefined) return at
    const isInside = found instanceof DeltaBuffer && (mayGrow || offset <= found.length)
    return isInside ? at : undefined
  }

  /** Whether a reader receives the first chunk. */
  isFromStart(from: ReadFrom): boolean {
    return this.#positionOf(from) === START
  }

  /** Adds a reader. Returns undefined if the turn is too long to be replayed. */
  attach(sink: Sink, from: ReadFrom = 'start'): LogReader | undefined {
    this.#awaited = false
    if (this.#isAbandoned) sink.abandon()
    if (this.#isAbandoned || !this.#replayable) return undefined
    const reader = new LogReader(sink, {
      log: this,
      readsAll: isPosition(from),
      stallTimeoutMs: this.#limits.stallTimeoutMs,
      onGone: () => {
        this.#readers.delete(reader)
        this.#wakeRoom()
        if (this.#readers.size === 0) this.onUnwatched()
      },
      onRoom: () => this.#wakeRoom(),
    })
    this.#readers.add(reader)
    reader.catchUp(this.#positionOf(from))
    for (const sound of this.#early.splice(0)) reader.pass(sound)
    return reader
  }

  #positionOf(from: ReadFrom): Position {
    if (from === 'start') return START
    if (isPosition(from)) return from.position
    return (from === 'pause' ? undefined : this.#marks?.get(from.after)) ?? this.#pause
  }

  /** The position after the last chunk. */
  get tip(): Position {
    const last = this.#entries.at(-1)
    return last instanceof DeltaBuffer
      ? { entry: this.#dropped + this.#entries.length - 1, offset: last.length }
      : { entry: this.#dropped + this.#entries.length, offset: 0 }
  }

  /** Returns the chunk at a position, of a run of deltas not more than up to `to`. Returns undefined at `to`, by default the tip. */
  read({ entry, offset }: Position, to = this.tip): ReadChunk | undefined {
    const found = this.#entries[entry - this.#dropped]
    if (found === undefined || entry > to.entry) return undefined
    const next = { entry: entry + 1, offset: 0 }
    const end = entry === to.entry ? to.offset : undefined
    if (typeof found === 'string')
      return end === undefined ? { json: found, entry, next } : undefined
    if (offset >= (end ?? found.length)) return this.read(next, to)
    const frame = found.frameFrom(offset, end)
    const { json, text } = frame
    return { json, text, entry, next: { entry, offset: frame.end } }
  }

  /** Returns the chunk at a position like `read`, but leaves out those that later ones have superseded. */
  readCurrent(at: Position): ReadChunk | undefined {
    let found = this.read(at)
    while (found && this.#superseded?.has(found.entry)) found = this.read(found.next)
    return found
  }

  /** Returns the text of a part so far. */
  textOf(kind: TextKind, id: string): string {
    const chunk = { type: `${kind}-delta`, id, delta: '' } as const
    const run = this.#entries.findLast(
      (entry) => entry instanceof DeltaBuffer && entry.belongsTo(chunk),
    )
    return run instanceof DeltaBuffer ? run.text : ''
  }

  /** Returns the beginning of the chunk's JSON. */
  #appendDelta(chunk: DeltaChunk): string {
    const last = this.#entries.at(-1)
    if (last instanceof DeltaBuffer && last.belongsTo(chunk)) return last.add(chunk.delta)
    const run = new DeltaBuffer(chunk.type, chunk.id)
    this.#entries.push(run)
    return run.add(chunk.delta)
  }

  #appendEntry(chunk: Exclude<Chunk, DeltaChunk>): string {
    const entry = this.#dropped + this.#entries.length
    const offered = readOffer(chunk)
    // BT10: a page that reads the turn again must not run a call that has its result.
    if (isResult(chunk)) this.#supersede('offer', chunk.toolCallId)
    else if (offered !== undefined) (this.#open ??= []).push({ type: 'offer', id: offered, entry })
    else if (chunk.type === 'tool-approval-request')
      (this.#open ??= []).push({ type: 'request', id: chunk.approvalId, entry })
    else if (chunk.type === 'data-approval' && chunk.data.state === 'approved')
      this.supersedeRequest(chunk.data.approvalId)
    const json = serialiseChunk(chunk)
    this.#entries.push(json)
    return json
  }

  #supersede(type: OpenEntry['type'], id: string): void {
    if (!this.#open) return
    const isEnded = (open: OpenEntry): boolean => open.type === type && open.id === id
    for (const { entry } of this.#open.filter(isEnded)) (this.#superseded ??= new Set()).add(entry)
    this.#open = this.#open.filter((open) => !isEnded(open))
  }

  // A turn that cannot be replayed is kept only while a reader has to catch up.
  #dropRead(): void {
    for (const reader of this.#readers) if (reader.lagging) return
    this.#dropped += this.#entries.length
    this.#entries = []
  }

  #wakeRoom(): void {
    for (const wake of this.#roomWaiters.splice(0)) wake()
  }
}

/** An offer of a call to the client, or an approval request. `id` is that of the call or of the approval. */
interface OpenEntry {
  readonly type: 'offer' | 'request'
  readonly id: string
  readonly entry: number
}

/** The number of deltas that are joined into one string. */
const BLOCK_DELTAS = 64

/** The longest delta for a reader that catches up. A limit lets its backpressure take effect in time. */
const MAX_CATCH_UP = 16_384

/**
 * All deltas of one text part. They are stored as text in blocks, and not as chunks: a long reply costs its characters, and not an
 * object and a hundred bytes of JSON per token.
 */
class DeltaBuffer {
  readonly #type: DeltaChunk['type']
  readonly #id: string
  readonly #head: string
  readonly #blocks: { readonly start: number; readonly text: string }[] = []
  #joined = 0
  #recent: string[] = []
  #length = 0

  constructor(type: DeltaChunk['type'], id: string) {
    this.#type = type
    this.#id = id
    this.#head = deltaHead(type, id)
  }

  get length(): number {
    return this.#length
  }

  /** Adds a delta. Returns the beginning of its chunk's JSON, up to the text. */
  add(delta: string): string {
    this.#recent.push(delta)
    this.#length += delta.length
    if (this.#recent.length === BLOCK_DELTAS) this.#join()
    return this.#head
  }

  belongsTo({ type, id }: DeltaChunk): boolean {
    return this.#type === type && this.#id === id
  }

  /** Returns the JSON of one chunk with the text from `offset`, that of the text alone, and the offset after it. */
  frameFrom(offset: number, end = this.#length) {
    const delta = this.#textFrom(offset, MAX_CATCH_UP).slice(0, end - offset)
    const text = JSON.stringify(delta)
    return { json: `${this.#head}${text}}`, text, end: offset + delta.length }
  }

  get text(): string {
    return this.#textFrom(0, this.#length)
  }

  #join(): void {
    const text = this.#recent.join('')
    this.#blocks.push({ start: this.#joined, text })
    this.#joined += text.length
    this.#recent = []
  }

  #textFrom(offset: number, most: number): string {
    if (this.#recent.length > 0) this.#join()
    // Readers catch up near the end, so the search starts there.
    let index = this.#blocks.length - 1
    while (index > 0 && (this.#blocks[index]?.start ?? 0) > offset) index -= 1
    let text = ''
    for (; index < this.#blocks.length && text.length < most; index += 1) {
      const block = this.#blocks[index]
      if (block) text += block.text.slice(Math.max(0, offset - block.start))
    }
    return truncate(text, most)
  }
}

/** Truncates a text without splitting a surrogate pair. */
function truncate(text: string, most: number): string {
  if (text.length <= most) return text
  const last = text.charCodeAt(most - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most)
}

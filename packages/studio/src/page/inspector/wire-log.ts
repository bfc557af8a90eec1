import type { WireEvent } from 'adk-stream-protocol/client'

import { startTrace, endTrace, traceChunk, type TurnTrace } from './trace.ts'

/** A frame or a request. It is formatted when it is shown. */
export interface WireLine {
  readonly number: number
  readonly at: number
  readonly direction: 'in' | 'out'
  readonly type: string
  /** The number of chunks. Consecutive deltas share a line. */
  readonly count: number
  readonly content: object
}

/** A request that is not a stream, such as a decision in the inbox. */
export interface HttpCall {
  readonly method: string
  readonly path: string
  /** The body that was sent. */
  readonly body?: unknown
}

export interface SoundCount {
  readonly in: number
  readonly out: number
}

/** What the inspector shows. The same object until something changes. */
export interface WireView {
  readonly turns: readonly TurnTrace[]
  readonly lines: readonly WireLine[]
  readonly sound: SoundCount
}

const MAX_TURNS = 20
const MAX_LINES = 1000
/** The maximum number of characters of joined deltas. */
const MAX_TEXT = 20_000

/** How an event came: over a socket, every chunk is also a frame. */
export type Via = 'http' | 'socket'

/**
 * Keeps the newest traffic between the page and the server. Listeners are called at most once per animation frame, however fast
 * chunks arrive.
 */
export class WireLog {
  readonly #turns: TurnTrace[] = []
  readonly #lines: WireLine[] = []
  readonly #listeners = new Set<() => void>()
  #sound: SoundCount = { in: 0, out: 0 }
  #count = 0
  #view: WireView | undefined
  #isScheduled = false

  /** The `observe` option of the transports. */
  readonly observe = (event: WireEvent, via: Via = 'socket'): void => {
    this.#record(event, via)
    this.#changed()
  }

  /** Records a request. Returns a function that records its response. */
  readonly observeCall = ({ method, path, body }: HttpCall): ((status: number) => void) => {
    const type = `${method} ${path}`
    this.#addLine('out', { type, ...(body !== undefined && { body }) }, clock())
    this.#changed()
    return (status) => {
      this.#addLine('in', { type: `${status} ${type}` }, clock())
      this.#changed()
    }
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly view = (): WireView =>
    (this.#view ??= {
      turns: [...this.#turns],
      lines: [...this.#lines],
      sound: this.#sound,
    })

  clear(): void {
    this.#turns.length = 0
    this.#lines.length = 0
    this.#sound = { in: 0, out: 0 }
    this.#view = undefined
    this.#notify()
  }

  #changed(): void {
    this.#view = undefined
    this.#notify()
  }

  #record(event: WireEvent, via: Via): void {
    const at = clock()
    switch (event.type) {
      case 'request':
        keep(this.#turns, startTrace(event, at), MAX_TURNS)
        if (event.trigger !== 'turn') this.#addLine('out', event, at)
        return
      case 'chunk': {
        const turn = this.#turnOf(event.request)
        if (turn) traceChunk(turn, event.chunk, at)
        if (via === 'http') this.#addChunk(event.chunk, at)
        return
      }
      case 'end': {
        const turn = this.#turnOf(event.request)
        if (turn) endTrace(turn, at, event.error)
        const { error } = event
        if (via === 'http')
          this.#addLine('in', { type: 'end', ...(error !== undefined && { error }) }, at)
        return
      }
      case 'frame':
        return this.#addLine(event.direction, event.frame, at)
      case 'sound': {
        const { direction, bytes } = event
        this.#sound = { ...this.#sound, [direction]: this.#sound[direction] + bytes }
        return
      }
      case 'votes':
      case 'user-message':
    }
  }

  #turnOf(request: string): TurnTrace | undefined {
    return this.#turns.findLast((turn) => turn.request === request)
  }

  /** Adds a chunk of a stream. Consecutive deltas become one line. */
  #addChunk(chunk: object & { readonly type: string }, at: number): void {
    const last = this.#lines.at(-1)
    const delta = 'delta' in chunk && typeof chunk.delta === 'string' ? chunk.delta : undefined
    if (delta === undefined || last?.type !== chunk.type || last.direction !== 'in')
      return this.#addLine('in', chunk, at)
    const before = 'delta' in last.content ? String(last.content.delta) : ''
    const content = { ...chunk, delta: `${before}${delta}`.slice(0, MAX_TEXT) }
    this.#lines.pop()
    this.#lines.push({ ...last, count: last.count + 1, content })
  }

  #addLine(direction: 'in' | 'out', content: object, at: number): void {
    const type = 'type' in content ? String(content.type) : ''
    this.#count += 1
    keep(this.#lines, { number: this.#count, at, direction, type, content, count: 1 }, MAX_LINES)
  }

  #notify(): void {
    if (this.#isScheduled || this.#listeners.size === 0) return
    this.#isScheduled = true
    requestAnimationFrame(() => {
      this.#isScheduled = false
      for (const listener of this.#listeners) listener()
    })
  }
}

/** A clock that cannot be set back. */
function clock(): number {
  return performance.timeOrigin + performance.now()
}

function keep<Item>(items: Item[], item: Item, limit: number): void {
  items.push(item)
  if (items.length > limit) items.shift()
}

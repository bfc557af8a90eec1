import type { WireEvent } from 'adk-stream-protocol/client'

import { startTrace, endTrace, traceChunk, type TurnTrace } from './trace.ts'

/** A frame or a request. It is formatted when it is shown. */
export interface WireLine {
  readonly number: number
  readonly at: number
  readonly direction: 'in' | 'out'
  readonly type: string
  readonly content: object
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
  readonly observe = (event: WireEvent): void => {
    this.#record(event, performance.timeOrigin + performance.now())
    this.#view = undefined
    this.#notify()
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

  #record(event: WireEvent, at: number): void {
    switch (event.type) {
      case 'request':
        keep(this.#turns, startTrace(event, at), MAX_TURNS)
        if (event.trigger !== 'turn') this.#addLine('out', event, at)
        return
      case 'chunk': {
        const turn = this.#turnOf(event.request)
        if (turn) traceChunk(turn, event.chunk, at)
        return
      }
      case 'end': {
        const turn = this.#turnOf(event.request)
        if (turn) endTrace(turn, at, event.error)
        return
      }
      case 'frame':
        return this.#addLine(event.direction, event.frame, at)
      case 'sound': {
        const { direction, bytes } = event
        this.#sound = { ...this.#sound, [direction]: this.#sound[direction] + bytes }
        return
      }
      case 'user-message':
    }
  }

  #turnOf(request: string): TurnTrace | undefined {
    return this.#turns.findLast((turn) => turn.request === request)
  }

  #addLine(direction: 'in' | 'out', content: object, at: number): void {
    const type = 'type' in content ? String(content.type) : ''
    this.#count += 1
    keep(this.#lines, { number: this.#count, at, direction, type, content }, MAX_LINES)
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

function keep<Item>(items: Item[], item: Item, limit: number): void {
  items.push(item)
  if (items.length > limit) items.shift()
}

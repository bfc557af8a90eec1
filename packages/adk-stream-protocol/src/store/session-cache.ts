import type { Event } from '@google/adk'

export interface SessionCacheLimits {
  /** Sessions kept at most; default 1,000; 0 keeps none. */
  readonly sessions?: number
  /** Characters of stored JSON kept at most, with an allowance for each event; default 32 Mi. */
  readonly characters?: number
}

/** The events of one session as far as they have been read. */
export interface SessionHistory {
  /** Grows when stored events are changed or removed, so that what was read before no longer holds. */
  readonly epoch: number
  seq: number
  size: number
  readonly events: Event[]
  /** Where in `events` the function calls are. */
  readonly calls: number[]
}

/** Parsed histories by session, the least recently used dropped first. */
export class SessionCache {
  readonly #histories = new Map<number, { history: SessionHistory; size: number }>()
  readonly #limits: Required<SessionCacheLimits>
  #size = 0

  constructor(limits: SessionCacheLimits = {}) {
    this.#limits = { sessions: 1_000, characters: 32 * 1024 * 1024, ...limits }
  }

  get(session: number): SessionHistory | undefined {
    return this.#histories.get(session)?.history
  }

  /** Keeps a history as the most recently used one, as far as the limits allow. */
  keep(session: number, history: SessionHistory): void {
    this.drop(session)
    // Too large even alone: everything else would be dropped for nothing.
    if (history.size > this.#limits.characters) return
    this.#histories.set(session, { history, size: history.size })
    this.#size += history.size
    for (const oldest of this.#histories.keys()) {
      if (this.#histories.size <= this.#limits.sessions && this.#size <= this.#limits.characters)
        break
      this.drop(oldest)
    }
  }

  drop(session: number): void {
    this.#size -= this.#histories.get(session)?.size ?? 0
    this.#histories.delete(session)
  }

  clear(): void {
    this.#histories.clear()
    this.#size = 0
  }
}

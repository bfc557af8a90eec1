import type { Event } from '@google/adk'

export interface SessionCacheLimits {
  /** The maximum number of sessions. Default 1,000. 0 disables the cache. */
  readonly sessions?: number
  /** The maximum number of characters of stored JSON, with an allowance for each event. Default: 32 Mi. */
  readonly characters?: number
}

/** The events of a session that have been read so far. */
export interface SessionHistory {
  /** Grows when stored events are changed or removed. A history of an earlier epoch is invalid. */
  readonly epoch: number
  seq: number
  size: number
  readonly events: Event[]
  /** The indices in `events` of events with function calls. */
  readonly calls: number[]
}

/** A cache of parsed histories. It drops the least recently used one first. */
export class SessionCache<Key = number> {
  readonly #histories = new Map<Key, { history: SessionHistory; size: number }>()
  readonly #limits: Required<SessionCacheLimits>
  #size = 0

  constructor(limits: SessionCacheLimits = {}) {
    this.#limits = { sessions: 1_000, characters: 32 * 1024 * 1024, ...limits }
  }

  get(session: Key): SessionHistory | undefined {
    return this.#histories.get(session)?.history
  }

  /** Stores a history as the most recently used one, within the limits. */
  keep(session: Key, history: SessionHistory): void {
    this.drop(session)
    // It exceeds the limit on its own, and dropping all others would not help.
    if (history.size > this.#limits.characters) return
    this.#histories.set(session, { history, size: history.size })
    this.#size += history.size
    for (const oldest of this.#histories.keys()) {
      if (this.#histories.size <= this.#limits.sessions && this.#size <= this.#limits.characters)
        break
      this.drop(oldest)
    }
  }

  drop(session: Key): void {
    this.#size -= this.#histories.get(session)?.size ?? 0
    this.#histories.delete(session)
  }

  clear(): void {
    this.#histories.clear()
    this.#size = 0
  }
}

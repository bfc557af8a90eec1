/** How many times in a row a peer may give no sign before it is taken for dead. */
const MAX_MISSES = 2

export interface HeartbeatPeer {
  ping(): void
  onDead(): void
}

/**
 * Finds out that the other side is gone when no packet says so: a cable was pulled, a phone went to sleep. All peers share one
 * timer, which looks at each of them once in the interval, spread over it.
 */
export class Heartbeats {
  readonly #intervalMs: number
  /** Silent intervals of each peer. In the order in which they are looked at: one that was goes to the end. */
  readonly #misses = new Map<HeartbeatPeer, { misses: number; nextAt: number }>()
  #timer: NodeJS.Timeout | undefined

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** Begins to look after a peer. */
  add(peer: HeartbeatPeer): void {
    this.#misses.set(peer, { misses: 0, nextAt: performance.now() + this.#intervalMs })
    this.#schedule()
  }

  /** The peer gave a sign of life. */
  beat(peer: HeartbeatPeer): void {
    const state = this.#misses.get(peer)
    if (state) state.misses = 0
  }

  remove(peer: HeartbeatPeer): void {
    this.#misses.delete(peer)
    if (this.#misses.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #schedule(): void {
    const [next] = this.#misses.values()
    if (next === undefined || this.#timer !== undefined) return
    const delay = Math.max(0, next.nextAt - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#look()
      this.#schedule()
    }, delay)
  }

  #look(): void {
    const now = performance.now()
    for (const [peer, state] of this.#misses) {
      if (state.nextAt > now) return
      this.#misses.delete(peer)
      if (state.misses >= MAX_MISSES) {
        peer.onDead()
        continue
      }
      state.misses += 1
      state.nextAt = now + this.#intervalMs
      this.#misses.set(peer, state)
      peer.ping()
    }
  }
}

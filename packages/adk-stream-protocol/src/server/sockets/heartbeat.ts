/** How many pings in a row a peer may miss before it counts as dead. */
const MAX_MISSES = 2

export interface HeartbeatPeer {
  ping(): void
  onDead(): void
}

/**
 * Detects dead connections, for example after a phone went to sleep. All peers share one timer, which checks each peer once per
 * interval, spread over the interval.
 */
export class Heartbeats {
  readonly #intervalMs: number
  /** The missed pings of each peer, in the order of their next check. */
  readonly #misses = new Map<HeartbeatPeer, { misses: number; nextAt: number }>()
  #timer: NodeJS.Timeout | undefined

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** Starts to check a peer. */
  add(peer: HeartbeatPeer): void {
    this.#misses.set(peer, { misses: 0, nextAt: performance.now() + this.#intervalMs })
    this.#schedule()
  }

  /** Records a sign of life of a peer. */
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
      this.#checkDue()
      this.#schedule()
    }, delay)
  }

  #checkDue(): void {
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

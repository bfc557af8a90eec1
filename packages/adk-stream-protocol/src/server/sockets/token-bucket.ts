/** Limits a rate: an average number per second, with bursts up to the capacity. */
export class TokenBucket {
  readonly #perSecond: number
  readonly #capacity: number
  readonly #now: () => number
  #tokens: number
  #filledAt: number

  /** The default capacity is the amount of two seconds. */
  constructor(perSecond: number, capacity = perSecond * 2, now = monotonicNow) {
    this.#perSecond = perSecond
    this.#capacity = capacity
    this.#now = now
    this.#tokens = capacity
    this.#filledAt = now()
  }

  /** Takes tokens. Returns false and takes none if there are not enough. */
  take(count: number): boolean {
    const now = this.#now()
    const filled = this.#tokens + ((now - this.#filledAt) / 1_000) * this.#perSecond
    this.#tokens = Math.min(this.#capacity, filled)
    this.#filledAt = now
    if (this.#tokens < count) return false
    this.#tokens -= count
    return true
  }
}

function monotonicNow(): number {
  return performance.now()
}

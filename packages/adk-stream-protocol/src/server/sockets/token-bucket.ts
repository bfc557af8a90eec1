/** How fast something may come: so many per second on the average, and as many as the bucket holds at once. */
export class TokenBucket {
  readonly #perSecond: number
  readonly #capacity: number
  readonly #now: () => number
  #tokens: number
  #filledAt: number

  /** By default the bucket holds two seconds' worth. */
  constructor(perSecond: number, capacity = perSecond * 2, now = monotonicNow) {
    this.#perSecond = perSecond
    this.#capacity = capacity
    this.#now = now
    this.#tokens = capacity
    this.#filledAt = now()
  }

  /** Takes some out. False when there are not enough; then none are taken. */
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

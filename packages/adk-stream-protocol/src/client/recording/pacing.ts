/** How a recording is played: with its pauses, at once, or a chunk for each call of `step`. */
export type Pace = 'real-time' | 'fast' | 'step'

/** Lets one thing after the other through, at a pace. */
export class Pacing {
  readonly #pace: Pace
  readonly #waiting: (() => void)[] = []
  #steps = 0

  constructor(pace: Pace) {
    this.#pace = pace
  }

  /** Lets one more through. */
  step(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#steps += 1
  }

  /** Waits for its turn; `ms` is the pause in real time. */
  async wait(ms: number, signal?: AbortSignal): Promise<void> {
    if (this.#pace === 'fast' || signal?.aborted) return
    await new Promise<void>((resolve) => {
      signal?.addEventListener('abort', () => resolve(), { once: true })
      if (this.#pace === 'real-time') setTimeout(resolve, ms)
      else if (this.#steps === 0) this.#waiting.push(resolve)
      else {
        this.#steps -= 1
        resolve()
      }
    })
  }
}

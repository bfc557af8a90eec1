/** `real-time`: with the recorded pauses. `fast`: without pauses. `step`: one chunk for each call of `step()`. */
export type Pace = 'real-time' | 'fast' | 'step'

/** Delays the chunks of a playback. */
export class Pacing {
  readonly #pace: Pace
  readonly #waiting: (() => void)[] = []
  #steps = 0

  constructor(pace: Pace) {
    this.#pace = pace
  }

  /** Plays one more chunk. */
  step(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#steps += 1
  }

  /** Resolves when the next chunk may be played. `ms` is the recorded pause. */
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

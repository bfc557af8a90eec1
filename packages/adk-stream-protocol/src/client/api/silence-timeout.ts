import { disconnected } from '../adk-error.ts'

/** How long nothing may be heard before a server has said how often it gives a sign: three of its keep-alive times by default. */
const DEFAULT_MS = 45_000

/** How many signs may be missed. */
const MISSED = 3

/** Gives a connection up on which nothing comes any more: one that is half open neither tells anything nor ends. */
export class SilenceTimeout {
  readonly #ending = new AbortController()
  #ms = DEFAULT_MS
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor() {
    this.heard()
  }

  /** Aborted when it is over. */
  get signal(): AbortSignal {
    return this.#ending.signal
  }

  /** Something came; with it, perhaps, how often something will. */
  heard(keepAliveMs?: number): void {
    clearTimeout(this.#timer)
    if (keepAliveMs !== undefined) this.#ms = keepAliveMs * MISSED
    this.#timer = setTimeout(
      () => this.#ending.abort(disconnected('the feed fell silent')),
      this.#ms,
    )
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}

/** How many times in a row a peer may give no sign before it is taken for dead. */
const MAX_MISSES = 2

export interface HeartbeatOptions {
  readonly intervalMs: number
  readonly ping: () => void
  readonly onDead: () => void
}

/** Finds out that the other side is gone when no packet says so: a cable was pulled, a phone went to sleep. */
export class Heartbeat {
  readonly #timer: NodeJS.Timeout
  #misses = 0

  constructor({ intervalMs, ping, onDead }: HeartbeatOptions) {
    this.#timer = setInterval(() => {
      if (this.#misses >= MAX_MISSES) {
        this.stop()
        onDead()
        return
      }
      this.#misses += 1
      ping()
    }, intervalMs)
  }

  /** The peer gave a sign of life. */
  beat(): void {
    this.#misses = 0
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

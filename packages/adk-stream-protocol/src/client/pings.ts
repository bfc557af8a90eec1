interface Ping {
  readonly begun: number
  readonly resolve: (ms: number) => void
  readonly reject: (error: unknown) => void
}

/** Pings that wait for their answer. */
export class Pings {
  readonly #waiting = new Map<string, Ping>()

  /** Resolves with the ms until the answer. */
  send(transmit: (nonce: string) => void): Promise<number> {
    const nonce = crypto.randomUUID()
    return new Promise((resolve, reject) => {
      this.#waiting.set(nonce, { begun: performance.now(), resolve, reject })
      transmit(nonce)
    })
  }

  onPong(nonce: string): void {
    const ping = this.#waiting.get(nonce)
    this.#waiting.delete(nonce)
    ping?.resolve(performance.now() - ping.begun)
  }

  failAll(error: unknown): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

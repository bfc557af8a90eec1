import { disconnected } from '../adk-error.ts'
import { newId } from '../../shared/new-id.ts'

interface Ping {
  readonly begun: number
  readonly timer: ReturnType<typeof setTimeout>
  readonly resolve: (ms: number) => void
  readonly reject: (error: unknown) => void
}

/** How long the server may take. */
const TIMEOUT_MS = 10_000

/** Pings that wait for their answer. Each is answered, or fails in time. */
export class Pings {
  readonly #waiting = new Map<string, Ping>()

  get size(): number {
    return this.#waiting.size
  }

  /** What is to be sent again over another socket. */
  get nonces(): readonly string[] {
    return [...this.#waiting.keys()]
  }

  /** Resolves with the ms until the answer. */
  send(transmit: (nonce: string) => void): Promise<number> {
    const nonce = newId()
    return new Promise((resolve, reject) => {
      const begun = performance.now()
      const timer = setTimeout(() => {
        this.#waiting.delete(nonce)
        reject(disconnected('a ping was not answered'))
      }, TIMEOUT_MS)
      this.#waiting.set(nonce, { begun, timer, resolve, reject })
      transmit(nonce)
    })
  }

  onPong(nonce: string): void {
    const ping = this.#waiting.get(nonce)
    if (!ping) return
    this.#waiting.delete(nonce)
    clearTimeout(ping.timer)
    ping.resolve(performance.now() - ping.begun)
  }

  failAll(error: unknown): void {
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer)
      reject(error)
    }
    this.#waiting.clear()
  }
}

import { setTimeout as delay } from 'node:timers/promises'

import { ProtocolError } from '../protocol/errors.ts'

/** The interval at which a closing bridge checks whether its work has ended. */
const POLL_MS = 20

/** The drain phase of `close()`: running work may finish, new work is refused. */
export class Drain {
  #deadline: number | undefined

  /** Whether the bridge is closing. */
  get active(): boolean {
    return this.#deadline !== undefined
  }

  /** Starts draining for at most `drainMs`. A second call can only shorten the time. */
  start(drainMs: number): void {
    this.#deadline = Math.min(this.#deadline ?? Infinity, performance.now() + drainMs)
  }

  /** Throws `unavailable` if the bridge is closing. The client can retry on another process. */
  refuseNewWork(): void {
    if (this.active) throw new ProtocolError('unavailable', { retryAfterSeconds: 1 })
  }

  /** Resolves when the work has ended or the drain time is over. */
  async until(hasEnded: () => boolean): Promise<void> {
    while (!hasEnded() && performance.now() < (this.#deadline ?? Infinity)) await delay(POLL_MS)
  }
}

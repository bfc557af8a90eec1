import { setTimeout as delay } from 'node:timers/promises'

import { ProtocolError } from '../protocol/errors.ts'

/** How often a closing bridge looks whether its work has ended. */
const POLL_MS = 20

/** The time between the call of `close()` and the end: what runs may end, and nothing new begins. */
export class Drain {
  #deadline: number | undefined

  /** Whether the bridge is closing. */
  get active(): boolean {
    return this.#deadline !== undefined
  }

  /** Begins to drain, for at most so long. Called again, it can only shorten the time. */
  begin(drainMs: number): void {
    this.#deadline = Math.min(this.#deadline ?? Infinity, performance.now() + drainMs)
  }

  /** Throws if the bridge is closing: the work is for another process, or for this one when it is started again. */
  refuseNewWork(): void {
    if (this.active) throw new ProtocolError('unavailable', { retryAfterSeconds: 1 })
  }

  /** Resolves when the work has ended, or the time is over. */
  async until(hasEnded: () => boolean): Promise<void> {
    while (!hasEnded() && performance.now() < (this.#deadline ?? Infinity)) await delay(POLL_MS)
  }
}

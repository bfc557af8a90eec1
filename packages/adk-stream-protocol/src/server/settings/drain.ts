import { setTimeout as delay } from 'node:timers/promises'

import { ProtocolError } from '../../protocol/errors.ts'

/** How long running work may take to finish by default. */
export const DRAIN_MS = 30_000

/** The interval at which a closing bridge checks whether its work has ended. */
const POLL_MS = 20

/** The drain phase of `close()`: running work may finish, new work is refused. */
export interface Drain {
  /** Whether the bridge is closing. */
  isActive(): boolean
  /** Starts draining for at most `drainMs`. A second call can only shorten the time. */
  start(drainMs: number): void
  /** Throws `unavailable` if the bridge is closing. The client can retry on another process. */
  refuseNewWork(): void
  /** Resolves when the work has ended or the drain time is over. */
  until(hasEnded: () => boolean): Promise<void>
}

export function createDrain(): Drain {
  let deadline: number | undefined
  return {
    isActive: () => deadline !== undefined,
    start(drainMs) {
      deadline = Math.min(deadline ?? Infinity, performance.now() + drainMs)
    },
    refuseNewWork() {
      if (deadline !== undefined) throw new ProtocolError('unavailable', { retryAfterSeconds: 1 })
    },
    async until(hasEnded) {
      while (!hasEnded() && performance.now() < (deadline ?? Infinity)) await delay(POLL_MS)
    },
  }
}

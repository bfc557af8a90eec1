import { setTimeout as delay } from 'node:timers/promises'

import { StoreError } from '../../../store/store-error.ts'
import { delayBefore } from '../../../shared/backoff.ts'

/** How soon the store is used again after it could not be reached. */
const AGAIN = { firstMs: 50, maxMs: 1_000, attempts: Infinity }

/** Whether the store cannot be reached at the moment. See `StoreErrorCode`. */
export function isStoreAway(error: unknown): boolean {
  if (!(error instanceof Error && 'code' in error)) return false
  return error.code === 'unavailable' || error.code === 'busy'
}

/** Whether the store itself has failed for the moment. A server that closes also answers `unavailable`. */
export function isOutage(error: unknown): boolean {
  return error instanceof StoreError && error.isTransient
}

/**
 * Repeats a step until the store can be reached, while `isNeeded`. A write that is repeated must be the same, because it may be stored.
 */
export async function repeatWhileAway<Result>(
  step: () => Promise<Result>,
  isNeeded: (error: unknown) => boolean,
): Promise<Result> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await step()
    } catch (error) {
      if (!isStoreAway(error)) throw error
      await delay(delayBefore(attempt, AGAIN))
      if (!isNeeded(error)) throw error
    }
  }
}

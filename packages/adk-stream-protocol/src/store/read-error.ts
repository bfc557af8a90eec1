import { ProtocolError, toProtocolError } from '../protocol/errors.ts'
import { StoreError } from './store-error.ts'

/** Converts a thrown value to the error that clients receive. Only a temporary error of the store asks them to try again. */
export function readError(thrown: unknown): ProtocolError {
  if (!(thrown instanceof StoreError) || thrown.code === 'invalid') return toProtocolError(thrown)
  if (thrown.code === 'lock-lost') return new ProtocolError('turn-lost', { cause: thrown })
  if (thrown.isLasting) return new ProtocolError('store-failed', { cause: thrown })
  const retryAfterSeconds = thrown.code === 'busy' ? 1 : 5
  return new ProtocolError('unavailable', { cause: thrown, retryAfterSeconds })
}

/** Returns the error of the store that a plugin has thrown, or else what was thrown. */
export function findStoreError(thrown: unknown): unknown {
  return thrown instanceof Error && thrown.cause instanceof StoreError ? thrown.cause : thrown
}

/** Whether an error code is one that `readError` gives to failures of the store. */
export function isStoreFailure(code: string | undefined): boolean {
  return code === 'unavailable' || code === 'store-failed'
}

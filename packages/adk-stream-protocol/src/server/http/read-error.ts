import { ProtocolError, toProtocolError } from '../../protocol/errors.ts'
import { StoreError } from '../../store/store-error.ts'

/** Converts a thrown value to the error that clients receive. An unusable database is temporary; other unknown errors are internal. */
export function readError(thrown: unknown): ProtocolError {
  if (!(thrown instanceof StoreError)) return toProtocolError(thrown)
  if (thrown.code === 'lock-lost') return new ProtocolError('turn-lost', { cause: thrown })
  const retryAfterSeconds = thrown.code === 'busy' ? 1 : 5
  return new ProtocolError('unavailable', { cause: thrown, retryAfterSeconds })
}

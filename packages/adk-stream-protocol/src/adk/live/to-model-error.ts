import type { ErrorCode } from '../../protocol/errors.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { LiveConnectionError } from './live-connection-error.ts'

/** What a client may know of a live conversation that failed (ER2). What is none of the model's faults stays as it is. */
export function toModelError(thrown: unknown): unknown {
  if (!(thrown instanceof LiveConnectionError)) return thrown
  return new ProtocolError(classify(thrown), { cause: thrown })
}

function classify({ code, reason, retryable }: LiveConnectionError): ErrorCode {
  // A quota that is used up closes the socket with 1011, or refuses it with 429, and its name in the reason.
  if (/RESOURCE_EXHAUSTED|quota|\b429\b/i.test(reason)) return 'model-rate-limited'
  if (code === 'aborted') return 'unavailable'
  return retryable ? 'model-unavailable' : 'model-refused'
}

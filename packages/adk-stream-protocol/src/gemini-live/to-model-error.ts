import type { ErrorCode } from '../protocol/errors.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { readRetryDelay } from '../adk/model-error.ts'
import { LiveConnectionError } from './live-connection-error.ts'

/** What a client may know of a live conversation that failed (ER2). What is none of the model's faults stays as it is. */
export function toModelError(thrown: unknown): unknown {
  if (!(thrown instanceof LiveConnectionError)) return thrown
  // Seldom there: the reason of a close has 123 bytes, and Google says the seconds last.
  const retryAfterSeconds = thrown.rateLimited ? readRetryDelay(thrown.reason) : undefined
  return new ProtocolError(classify(thrown), {
    cause: thrown,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })
}

function classify({ code, rateLimited, retryable }: LiveConnectionError): ErrorCode {
  if (rateLimited) return 'model-rate-limited'
  if (code === 'aborted') return 'unavailable'
  return retryable ? 'model-unavailable' : 'model-refused'
}

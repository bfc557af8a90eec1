import { readRetryDelay } from '../agent/translate/model-outcome.ts'
import type { ErrorCode } from '../protocol/errors.ts'
import { ProtocolError } from '../protocol/errors.ts'

export type LivePhase = 'setup' | 'open'

/** A WebSocket close code, or the reason why there is none. */
export type LiveFailureCode =
  | number
  | 'timeout'
  | 'aborted'
  | 'refused'
  | 'misconfigured'
  | 'invalid-frame'

interface LiveFailure {
  readonly code: LiveFailureCode
  readonly reason: string
  readonly phase: LivePhase
  readonly cause?: unknown
}

/** A connection to Gemini Live could not be opened, or ended. */
export class LiveConnectionError extends Error {
  override readonly name = 'LiveConnectionError'
  readonly code: LiveFailureCode
  readonly reason: string
  readonly phase: LivePhase
  /** Whether a quota is exhausted. */
  readonly rateLimited: boolean
  /** Whether another attempt may succeed. */
  readonly retryable: boolean

  constructor({ code, reason, phase, cause }: LiveFailure) {
    const clean = hideKey(reason)
    super(
      `Gemini Live failed in ${phase} (${code}): ${clean}`,
      // A cause whose message contains the key would write it to every log.
      cause === undefined || clean !== reason ? undefined : { cause },
    )
    this.code = code
    this.reason = clean
    this.phase = phase
    this.rateLimited = QUOTA.test(reason)
    this.retryable = RETRYABLE.has(code) && !this.rateLimited
  }
}

export function toConnectionError(error: unknown): LiveConnectionError {
  if (error instanceof LiveConnectionError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new LiveConnectionError({ code: 'misconfigured', reason, phase: 'setup', cause: error })
}

/** Converts a connection error into the error that a client receives (ER2). Returns any other error unchanged. */
export function toClientError(thrown: unknown): unknown {
  if (!(thrown instanceof LiveConnectionError)) return thrown
  // Rarely present: a close reason has at most 123 bytes, and Google puts the delay last.
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

// Gemini closes connections with 1000 and 1005 as well. That does not end the conversation.
const RETRYABLE: ReadonlySet<LiveFailureCode> = new Set<LiveFailureCode>([
  1000,
  1001,
  1005,
  1006,
  1011,
  1012,
  1013,
  1014,
  'timeout',
])

// When a quota is exhausted, Gemini closes the socket with 1011 or refuses it with 429, and names the quota in the reason.
const QUOTA = /RESOURCE_EXHAUSTED|quota|\b429\b/i

// The key is part of the socket's URL, and so of some of its errors.
function hideKey(text: string): string {
  return text.replace(/([?&](?:key|access_token)=)[^&\s"']+/g, '$1…')
}

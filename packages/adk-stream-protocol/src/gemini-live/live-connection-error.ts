export type LivePhase = 'setup' | 'open'

/** A WebSocket close code, or what kept the connection from having one. */
export type LiveFailureCode =
  | number
  | 'timeout'
  | 'aborted'
  | 'refused'
  | 'misconfigured'
  | 'odd-frame'

export interface LiveFailure {
  readonly code: LiveFailureCode
  readonly reason: string
  readonly phase: LivePhase
  readonly cause?: unknown
}

/** Why a connection to Gemini Live was not made, or ended. */
export class LiveConnectionError extends Error {
  override readonly name = 'LiveConnectionError'
  readonly code: LiveFailureCode
  readonly reason: string
  readonly phase: LivePhase
  /** Whether a quota is used up. */
  readonly rateLimited: boolean
  /** Whether another attempt may do better. */
  readonly retryable: boolean

  constructor({ code, reason, phase, cause }: LiveFailure) {
    const clean = hideKey(reason)
    super(
      `Gemini Live failed in ${phase} (${code}): ${clean}`,
      // A cause with the key in its words would carry it into every log.
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

// 1000 and 1005: Gemini ends a connection, which is not the end of a conversation.
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

// A quota that is used up closes the socket with 1011, or refuses it with 429, and its name in the reason.
const QUOTA = /RESOURCE_EXHAUSTED|quota|\b429\b/i

// The key travels in the address of the socket, and so in some of its errors.
function hideKey(text: string): string {
  return text.replace(/([?&](?:key|access_token)=)[^&\s"']+/g, '$1…')
}

import type { ErrorCode, ErrorBody } from '../protocol/error-codes.ts'
import { isErrorBody } from '../protocol/error-codes.ts'
import type { ShownPreview } from '../protocol/preview.ts'

/** An error that the server reported: a rejected request, or a turn that failed. PROTOCOL.md lists the codes. */
export class AdkError extends Error {
  override readonly name = 'AdkError'
  readonly code: ErrorCode
  /** The delay before another attempt, if the server gave one. */
  readonly retryAfterSeconds: number | undefined

  /** The current preview of a call whose approval the server rejected. */
  readonly preview: ShownPreview | undefined

  constructor(
    code: ErrorCode,
    message: string,
    retryAfterSeconds?: number,
    preview?: ShownPreview,
  ) {
    super(message)
    this.code = code
    this.retryAfterSeconds = retryAfterSeconds
    this.preview = preview
  }
}

/** Creates the error of a connection for which the person has to sign in again. */
export function signedOut(): AdkError {
  return new AdkError(
    'unauthenticated',
    'You are signed out. Sign in again and repeat the request.',
  )
}

/** Creates the error of a lost connection. The AI SDK treats a `TypeError` whose message contains "network" as resumable. */
export function disconnected(detail: string, cause?: unknown): TypeError {
  return new TypeError(`network: ${detail}`, { cause })
}

/**
 * Returns the message of an error, to show to a person. A transport of the AI SDK throws the JSON body of a rejected request as the
 * error's message; this returns the sentence in it. All other messages are returned unchanged.
 */
export function readErrorMessage(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return readErrorBody(message)?.message ?? message
}

/** Returns the code of a bridge error, thrown by our transports or by those of the AI SDK. */
export function readErrorCode(error: Error): string | undefined {
  return error instanceof AdkError ? error.code : readErrorBody(error.message)?.code
}

/** Refusals that say nothing about the request: the server may accept the same one later. */
const TEMPORARY = new Set<string>([
  'unavailable',
  'internal',
  'too-fast',
  'too-many-turns',
  'turn-running',
])

/** Whether the same request may succeed later. */
export function isTemporary(error: unknown): boolean {
  return !(error instanceof AdkError) || TEMPORARY.has(error.code)
}

/** Whether the server, or a proxy before it, asks to send the same request again: it closes, or its database is away. */
export function isAway(error: unknown): error is AdkError {
  return (
    error instanceof AdkError &&
    error.code === 'unavailable' &&
    error.retryAfterSeconds !== undefined
  )
}

/** Returns the error in a response body. Returns undefined if the bridge did not send the body. */
export function readErrorBody(text: string): ErrorBody['error'] | undefined {
  const body = parseJson(text)
  return isErrorBody(body) ? body.error : undefined
}

/** Returns undefined if the text is not JSON, such as a proxy's error page. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

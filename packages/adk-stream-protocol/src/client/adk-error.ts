import type { ErrorCode } from '../protocol/errors.ts'

/** An error of the server, with one of the codes that PROTOCOL.md lists. */
export class AdkError extends Error {
  override readonly name = 'AdkError'
  readonly code: ErrorCode
  /** When it makes sense to try again, where the server says so. */
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, message: string, retryAfterSeconds?: number) {
    super(message)
    this.code = code
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** A connection that was lost. The AI SDK takes a `TypeError` that speaks of the network for one that can be resumed. */
export function disconnected(detail: string, cause?: unknown): TypeError {
  return new TypeError(`network: ${detail}`, { cause })
}

import type { FinishReason as GeminiFinishReason } from '@google/genai'

import type { FinishReason } from '../../protocol/chunk.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { TurnError } from '../../protocol/message.ts'

const FINISH_REASONS: Record<`${GeminiFinishReason}`, FinishReason> = {
  FINISH_REASON_UNSPECIFIED: 'stop',
  STOP: 'stop',
  CONTINUATION: 'other',
  MAX_TOKENS: 'length',
  SAFETY: 'content-filter',
  RECITATION: 'content-filter',
  LANGUAGE: 'content-filter',
  BLOCKLIST: 'content-filter',
  PROHIBITED_CONTENT: 'content-filter',
  SPII: 'content-filter',
  IMAGE_SAFETY: 'content-filter',
  IMAGE_PROHIBITED_CONTENT: 'content-filter',
  IMAGE_RECITATION: 'content-filter',
  MALFORMED_FUNCTION_CALL: 'error',
  UNEXPECTED_TOOL_CALL: 'error',
  TOO_MANY_TOOL_CALLS: 'error',
  NO_IMAGE: 'error',
  IMAGE_OTHER: 'other',
  OTHER: 'other',
}

/** Maps Gemini's finish reason to one that clients know. Returns `other` for an unknown reason (CH8). */
export function readFinishReason(reason: string): FinishReason {
  return Object.hasOwn(FINISH_REASONS, reason)
    ? FINISH_REASONS[reason as keyof typeof FINISH_REASONS]
    : 'other'
}

/** Whether an ADK `errorCode` is a finish reason. ADK reports every finish reason except STOP as an error. */
export function isFinishReason(errorCode: string): boolean {
  return Object.hasOwn(FINISH_REASONS, errorCode)
}

/** The code of a workflow node that ran when its server stopped. Its message has only the name of the node. */
export const NODE_INTERRUPTED = 'NODE_INTERRUPTED'

/** The code of a reply that the server, and not the model, failed to complete. Its message has the error that the client received. */
export const REPLY_FAILED = 'REPLY_FAILED'

/**
 * Returns what a client may know about an ADK error event (ER2). `errorCode` is Gemini's HTTP status or block reason.
 * The message stays on the server, except for the retry delay.
 */
export function describeModelError(errorCode: string, errorMessage = ''): TurnError {
  if (errorCode === NODE_INTERRUPTED)
    return new ProtocolError('internal', { message: errorMessage }).toJSON().error
  if (errorCode === REPLY_FAILED) return readReplyError(errorMessage)
  const code = classify(errorCode, errorMessage)
  const retryAfterSeconds = code === 'model-rate-limited' ? readRetryDelay(errorMessage) : undefined
  return new ProtocolError(
    code,
    retryAfterSeconds === undefined ? {} : { retryAfterSeconds },
  ).toJSON().error
}

function readReplyError(stored: string): TurnError {
  // `createFailureEvent` has written it.
  const { code, retryAfterSeconds } = JSON.parse(stored) as Pick<TurnError, 'retryAfterSeconds'> & {
    readonly code: ErrorCode
  }
  const delay = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
  return new ProtocolError(code, delay).toJSON().error
}

function classify(errorCode: string, errorMessage: string): ErrorCode {
  const status = readStatus(errorCode, errorMessage)
  if (status === 429) return 'model-rate-limited'
  if (status === 408 || status >= 500) return 'model-unavailable'
  if (status >= 400) return 'model-refused'
  // Any other code except ADK's catch-all is the reason why Gemini returned no candidate.
  if (errorCode !== 'UNKNOWN_ERROR') return 'model-blocked'
  return CAUSES.find(([pattern]) => pattern.test(errorMessage))?.[1] ?? 'internal'
}

// An error inside an open stream reaches ADK as text around Gemini's JSON, so ADK finds no code.
function readStatus(errorCode: string, errorMessage: string): number {
  const embedded = /"code":\s*(\d{3})\b/.exec(errorMessage)?.[1]
  return Number(errorCode === 'UNKNOWN_ERROR' ? embedded : errorCode)
}

const CAUSES: readonly (readonly [RegExp, ErrorCode])[] = [
  [/^Max number of llm calls limit of \d+ exceeded/, 'model-call-limit'],
  [/is not found in the toolsDict|a tool that does not exist/, 'unknown-tool'],
  [/fetch failed|ECONNREFUSED|ENOTFOUND/, 'model-unavailable'],
  // The timeout of the model client, `httpOptions.timeout`.
  [/AbortError|TimeoutError|timed out/, 'model-unavailable'],
  [/terminated|ECONNRESET|socket hang up|premature/i, 'model-interrupted'],
  [/Incomplete JSON segment|Unexpected end of JSON/, 'model-interrupted'],
]

/**
 * Returns the delay in seconds that Gemini requests. The message of a 429 ends with "Please retry in 34.07s.". Its
 * RetryInfo reaches ADK's event only from an open stream.
 */
export function readRetryDelay(message: string): number | undefined {
  const found = /retry in ([\d.]+)\s?s/.exec(message) ?? /"retryDelay":\s*"([\d.]+)s"/.exec(message)
  const seconds = found?.[1]
  return seconds === undefined ? undefined : Math.ceil(Number(seconds))
}

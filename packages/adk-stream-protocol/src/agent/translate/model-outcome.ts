import type {
  BlockedReason,
  FinishReason as GeminiFinishReason,
  TurnCompleteReason,
} from '@google/genai'

import type { ErrorCode } from '../../protocol/errors.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { FinishReason, TurnError } from '../../protocol/message.ts'

/** How a reply ended. */
export interface ReplyEnd {
  readonly finishReason: FinishReason
  /** The error of a reply that says nothing. Undefined if such a reply is not an error. */
  readonly ifSilent: ErrorCode | undefined
}

const COMPLETE: ReplyEnd = { finishReason: 'stop', ifSilent: 'model-mistake' }
const CUT: ReplyEnd = { finishReason: 'length', ifSilent: undefined }
const FILTERED: ReplyEnd = { finishReason: 'content-filter', ifSilent: 'model-blocked' }
const MISTAKE: ReplyEnd = { finishReason: 'error', ifSilent: 'model-mistake' }
const UNKNOWN: ReplyEnd = { finishReason: 'other', ifSilent: 'model-mistake' }

/** Reasons that newer versions of Gemini report. */
type NewReason = 'MALFORMED_RESPONSE' | 'MISSING_THOUGHT_SIGNATURE'

type Reason = `${GeminiFinishReason | TurnCompleteReason | BlockedReason}` | NewReason

/** Gemini's reasons for the end of a reply: the finish reason of a response, or the reason with which a live turn is complete. */
const REPLY_ENDS: Record<Reason, ReplyEnd> = {
  FINISH_REASON_UNSPECIFIED: COMPLETE,
  TURN_COMPLETE_REASON_UNSPECIFIED: COMPLETE,
  STOP: COMPLETE,
  // The model waits for the person to go on.
  NEED_MORE_INPUT: { finishReason: 'stop', ifSilent: undefined },
  MAX_TOKENS: CUT,
  SAFETY: FILTERED,
  RECITATION: FILTERED,
  LANGUAGE: FILTERED,
  BLOCKLIST: FILTERED,
  PROHIBITED_CONTENT: FILTERED,
  SPII: FILTERED,
  MODEL_ARMOR: FILTERED,
  JAILBREAK: FILTERED,
  BLOCKED_REASON_UNSPECIFIED: FILTERED,
  RESPONSE_REJECTED: FILTERED,
  PROHIBITED_INPUT_CONTENT: FILTERED,
  INPUT_TEXT_CONTAIN_PROMINENT_PERSON_PROHIBITED: FILTERED,
  INPUT_TEXT_NCII_PROHIBITED: FILTERED,
  INPUT_IP_PROHIBITED: FILTERED,
  INPUT_OTHER: FILTERED,
  INPUT_IMAGE_CELEBRITY: FILTERED,
  INPUT_IMAGE_PHOTO_REALISTIC_CHILD_PROHIBITED: FILTERED,
  IMAGE_PROHIBITED_INPUT_CONTENT: FILTERED,
  IMAGE_SAFETY: FILTERED,
  IMAGE_PROHIBITED_CONTENT: FILTERED,
  IMAGE_RECITATION: FILTERED,
  GENERATED_IMAGE_SAFETY: FILTERED,
  UNSAFE_PROMPT_FOR_IMAGE_GENERATION: FILTERED,
  GENERATED_CONTENT_SAFETY: FILTERED,
  GENERATED_AUDIO_SAFETY: FILTERED,
  GENERATED_VIDEO_SAFETY: FILTERED,
  GENERATED_CONTENT_PROHIBITED: FILTERED,
  GENERATED_CONTENT_BLOCKLIST: FILTERED,
  GENERATED_IMAGE_PROHIBITED: FILTERED,
  GENERATED_IMAGE_CELEBRITY: FILTERED,
  GENERATED_IMAGE_PROMINENT_PEOPLE_DETECTED_BY_REWRITER: FILTERED,
  GENERATED_IMAGE_IDENTIFIABLE_PEOPLE: FILTERED,
  GENERATED_IMAGE_MINORS: FILTERED,
  OUTPUT_IMAGE_IP_PROHIBITED: FILTERED,
  GENERATED_OTHER: FILTERED,
  MAX_REGENERATION_REACHED: FILTERED,
  MALFORMED_FUNCTION_CALL: MISTAKE,
  MALFORMED_RESPONSE: MISTAKE,
  MISSING_THOUGHT_SIGNATURE: MISTAKE,
  UNEXPECTED_TOOL_CALL: MISTAKE,
  TOO_MANY_TOOL_CALLS: MISTAKE,
  NO_IMAGE: MISTAKE,
  CONTINUATION: UNKNOWN,
  IMAGE_OTHER: UNKNOWN,
  OTHER: UNKNOWN,
}

/** Returns what one of Gemini's reasons means. A reason that is not known is `other` (CH8). */
export function readReplyEnd(reason: string): ReplyEnd {
  return Object.hasOwn(REPLY_ENDS, reason) ? REPLY_ENDS[reason as Reason] : UNKNOWN
}

/** Whether the error of an ADK event is a finish reason. ADK reports every finish reason except STOP as an error. */
export function isReplyEnd({
  errorCode,
  finishReason,
}: {
  readonly errorCode?: string
  readonly finishReason?: string
}): boolean {
  return errorCode !== undefined && errorCode === finishReason
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
  if (status >= 400) return classifyStatus(status, errorMessage)
  // Any other code except ADK's catch-all is the reason why Gemini returned no candidate.
  if (errorCode !== 'UNKNOWN_ERROR') return 'model-blocked'
  return CAUSES.find(([pattern]) => pattern.test(errorMessage))?.[1] ?? 'internal'
}

/** Classifies a request that Gemini rejected with an HTTP status. */
function classifyStatus(status: number, errorMessage: string): ErrorCode {
  if (status === 429) return 'model-rate-limited'
  if (status === 503) return 'model-overloaded'
  if (status === 408 || status >= 500) return 'model-unavailable'
  return DENIED_STATUSES.has(status) || isKeyRejected(errorMessage)
    ? 'model-access-denied'
    : 'model-refused'
}

/** Missing credentials, a missing permission, and a model that does not exist. */
const DENIED_STATUSES: ReadonlySet<number> = new Set([401, 403, 404])

/** Whether Gemini rejected the API key. It reports that with the status 400, as for any wrong request. */
export function isKeyRejected(message: string): boolean {
  return /API_KEY_INVALID|API key (?:not valid|not found|expired)|unregistered callers/i.test(
    message,
  )
}

/** Returns an error that says what to do, if Gemini rejected the API key. Returns any other error unchanged. */
export function explainModelError(error: unknown): unknown {
  if (!(error instanceof Error) || !isKeyRejected(error.message)) return error
  return new Error('Gemini rejected the API key. Check GOOGLE_API_KEY and restart.', {
    cause: error,
  })
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

import type { ErrorCode } from '../../protocol/errors.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { TurnError } from '../../protocol/message.ts'

/**
 * What a client may know of an ADK error event (ER2). ADK gives Gemini's HTTP status, or the reason of a block, as `errorCode`,
 * and the cause's own words as message; the words stay on the server, but for the seconds to wait.
 */
export function describeModelError(errorCode: string, errorMessage = ''): TurnError {
  const code = classify(errorCode, errorMessage)
  const retryAfterSeconds = code === 'model-rate-limited' ? readRetryDelay(errorMessage) : undefined
  return new ProtocolError(
    code,
    retryAfterSeconds === undefined ? {} : { retryAfterSeconds },
  ).toJSON().error
}

function classify(errorCode: string, errorMessage: string): ErrorCode {
  const status = readStatus(errorCode, errorMessage)
  if (status === 429) return 'model-rate-limited'
  if (status === 408 || status >= 500) return 'model-unavailable'
  if (status >= 400) return 'model-refused'
  // Anything else that is not ADK's own catch-all is the reason why Gemini gave no candidate.
  if (errorCode !== 'UNKNOWN_ERROR') return 'model-blocked'
  return CAUSES.find(([words]) => words.test(errorMessage))?.[1] ?? 'internal'
}

// An error inside an open stream reaches ADK as words around Gemini's JSON, so ADK finds no code in it.
function readStatus(errorCode: string, errorMessage: string): number {
  const embedded = /"code":\s*(\d{3})\b/.exec(errorMessage)?.[1]
  return Number(errorCode === 'UNKNOWN_ERROR' ? embedded : errorCode)
}

const CAUSES: readonly (readonly [RegExp, ErrorCode])[] = [
  [/^Max number of llm calls limit of \d+ exceeded/, 'model-call-limit'],
  [/is not found in the toolsDict|a tool that does not exist/, 'unknown-tool'],
  [/fetch failed|ECONNREFUSED|ENOTFOUND/, 'model-unavailable'],
  // The time limit of the client of the model, `httpOptions.timeout`.
  [/AbortError|TimeoutError|timed out/, 'model-unavailable'],
  [/terminated|ECONNRESET|socket hang up|premature/i, 'model-interrupted'],
  [/Incomplete JSON segment|Unexpected end of JSON/, 'model-interrupted'],
]

/**
 * How long Gemini asks to wait, in seconds. It ends the message of a 429 with "Please retry in 34.07s."; its RetryInfo reaches ADK's
 * event only from an open stream.
 */
export function readRetryDelay(message: string): number | undefined {
  const found = /retry in ([\d.]+)\s?s/.exec(message) ?? /"retryDelay":\s*"([\d.]+)s"/.exec(message)
  const seconds = found?.[1]
  return seconds === undefined ? undefined : Math.ceil(Number(seconds))
}

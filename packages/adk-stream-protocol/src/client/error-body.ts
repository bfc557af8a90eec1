import { AdkError } from './adk-error.ts'
import type { ErrorBody } from '../protocol/server-views.ts'
import { isErrorBody } from '../protocol/server-views.ts'

/**
 * The sentence of an error, to be shown to a person. A transport of the AI SDK throws the body of a refusal as it came, as JSON;
 * this reads the sentence in it. An `AdkError` has one already, as has an error that ended an answer.
 */
export function readErrorMessage(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return readErrorBody(message)?.message ?? message
}

/** The code of an error of the bridge, of our transports or of those of the AI SDK. */
export function readErrorCode(error: Error): string | undefined {
  return error instanceof AdkError ? error.code : readErrorBody(error.message)?.code
}

/** The error of the bridge that a response body tells of, if it does. */
export function readErrorBody(text: string): ErrorBody['error'] | undefined {
  const body = parseJson(text)
  return isErrorBody(body) ? body.error : undefined
}

/** Returns undefined if the text is not JSON, such as a proxy's page. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

import type { UIMessage } from 'ai'

import { AdkError, readErrorBody } from '../../client/adk-error.ts'
import { isRecord } from '../../protocol/guards.ts'
import { hasRunCall } from './has-run-call.ts'

/** Why there is no reply. Each kind asks for a different action of the person. */
export type Problem =
  /** `retryAt` is in ms since 1970. */
  | { readonly kind: 'rate-limited'; readonly retryAt: number | undefined }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'blocked' }
  | { readonly kind: 'signed-out' }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'unavailable' }
  /** A call ran before the reply failed. The reply is not regenerated; the person sends a message to continue. */
  | { readonly kind: 'unfinished' }

/**
 * An error as the server reports it.
 *
 * @inline
 */
export interface ServerError {
  readonly code: string
  readonly message: string
  /** When the server accepts the request again, if it is rate-limited. */
  readonly retryAfterSeconds?: number | undefined
}

/** Returns the problem of a chat, from its error and from its last message. */
export function readProblem(error: Error, messages: readonly UIMessage[], now: number): Problem {
  const failure = readFailure(messages.at(-1))
  if (failure !== undefined && hasRunCall(messages)) return { kind: 'unfinished' }
  // If the server rejects a request, AI SDK transports throw an error with the response body as its message.
  const serverError = error instanceof AdkError ? error : readErrorBody(error.message)
  if (serverError) return classify(serverError, now)
  const reported = readServerError(failure)
  if (reported) return classify(reported, now)
  // `fetch` and our sockets throw a TypeError if the network fails, before or during a reply.
  return { kind: error instanceof TypeError ? 'disconnected' : 'unavailable' }
}

/** Returns the error in the metadata of a failed reply, or undefined. */
export function readFailure(last: Pick<UIMessage, 'role' | 'metadata'> | undefined): unknown {
  const { metadata } = last?.role === 'assistant' ? last : {}
  return isRecord(metadata) ? metadata['error'] : undefined
}

/** Converts anything that was thrown. */
export function toServerError(thrown: unknown): ServerError {
  if (thrown instanceof AdkError) return thrown
  // The network failed. The request may have arrived, and can be sent again.
  return { code: 'unavailable', message: thrown instanceof Error ? thrown.message : String(thrown) }
}

function readServerError(value: unknown): ServerError | undefined {
  if (!isRecord(value)) return undefined
  const { code, message, retryAfterSeconds } = value
  if (typeof code !== 'string' || typeof message !== 'string') return undefined
  return { code, message, ...(typeof retryAfterSeconds === 'number' && { retryAfterSeconds }) }
}

function classify({ code, message, retryAfterSeconds }: ServerError, now: number): Problem {
  switch (code) {
    case 'model-rate-limited':
    case 'too-many-turns':
      return {
        kind: 'rate-limited',
        retryAt: retryAfterSeconds === undefined ? undefined : now + retryAfterSeconds * 1000,
      }
    case 'turn-running':
      return { kind: 'busy' }
    case 'model-blocked':
      return { kind: 'blocked' }
    case 'model-call-limit':
      return { kind: 'unfinished' }
    case 'unauthenticated':
      return { kind: 'signed-out' }
    case 'already-acted':
    case 'bad-request':
    case 'too-large':
    case 'too-many-live-chats':
      return { kind: 'refused', message }
    default:
      return { kind: 'unavailable' }
  }
}

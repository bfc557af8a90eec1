import type { UIMessage } from 'ai'

import { AdkError, readErrorBody } from '../../client/adk-error.ts'
import { isRecord } from '../../protocol/guards.ts'
import { hasActed } from './has-acted.ts'

/** Why there is no answer, told by what the reader can do about it. */
export type Problem =
  /** `retryAt`: in ms since 1970. */
  | { readonly kind: 'rate-limited'; readonly retryAt: number | undefined }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'blocked' }
  | { readonly kind: 'signed-out' }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'unavailable' }
  /** Something was done before the answer failed: it is not made anew, the person says how to go on. */
  | { readonly kind: 'unfinished' }

/** An error as the server tells it. */
export interface ToldError {
  readonly code: string
  readonly message: string
  readonly retryAfterSeconds?: number | undefined
}

/** Reads what went wrong from a chat's error and its last message, whichever says more. */
export function readProblem(error: Error, messages: readonly UIMessage[], now: number): Problem {
  const failure = readFailure(messages.at(-1))
  if (failure !== undefined && hasActed(messages)) return { kind: 'unfinished' }
  // A refused request: the transports of the AI SDK throw the body of the response as the message.
  const told = error instanceof AdkError ? error : readErrorBody(error.message)
  if (told) return classify(told, now)
  const failed = asTold(failure)
  if (failed) return classify(failed, now)
  // What `fetch` and our sockets fail with when the network does, before or in mid-answer.
  return { kind: error instanceof TypeError ? 'disconnected' : 'unavailable' }
}

/** Why an answer failed, as its message says; nothing where it did not. */
export function readFailure(last: Pick<UIMessage, 'role' | 'metadata'> | undefined): unknown {
  const { metadata } = last?.role === 'assistant' ? last : {}
  return isRecord(metadata) ? metadata['error'] : undefined
}

/** What is known of anything that was thrown. */
export function toTold(thrown: unknown): ToldError {
  if (thrown instanceof AdkError) return thrown
  // The network failed: nobody knows whether it arrived, and it can be tried again.
  return { code: 'unavailable', message: thrown instanceof Error ? thrown.message : String(thrown) }
}

function asTold(value: unknown): ToldError | undefined {
  if (!isRecord(value)) return undefined
  const { code, message, retryAfterSeconds } = value
  if (typeof code !== 'string' || typeof message !== 'string') return undefined
  return { code, message, ...(typeof retryAfterSeconds === 'number' && { retryAfterSeconds }) }
}

function classify({ code, message, retryAfterSeconds }: ToldError, now: number): Problem {
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

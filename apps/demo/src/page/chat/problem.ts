import { z } from 'zod'

import { type Message, TurnError } from './message.ts'

/** Why there is no answer, told by what the reader can do about it. */
export type Problem =
  | { readonly kind: 'rate-limited'; readonly seconds: number | undefined }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'blocked' }
  | { readonly kind: 'signed-out' }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'unavailable' }

/** Reads what went wrong from the error of `useChat` and from the last message, whichever says more. */
export function readProblem(error: Error, last: Message | undefined): Problem {
  // A refused request: the transport of the AI SDK throws the body of the response as the message.
  const refused = readBody(error.message)
  if (refused) return classify(refused)
  const failed = last?.role === 'assistant' ? last.metadata?.error : undefined
  if (failed) return classify(failed)
  // What `fetch` throws when the network fails, before or in mid-answer.
  if (error instanceof TypeError) return { kind: 'disconnected' }
  return { kind: 'unavailable' }
}

/** Why the server did not accept a decision; `undefined` for what has nothing to do with one. */
export function readRefusal(error: Error): TurnError | undefined {
  const refused = readBody(error.message)
  return refused && REFUSALS.has(refused.code) ? refused : undefined
}

const REFUSALS: ReadonlySet<string> = new Set([
  'approval-cancelled',
  'approval-decided',
  'approval-expired',
  'approval-voted',
  'bad-request',
  'not-allowed',
  'not-editable',
  'nothing-new',
  'unknown-approval',
])

const Body = z.object({ error: TurnError })

function readBody(text: string): TurnError | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    return Body.safeParse(JSON.parse(text)).data?.error
  } catch {
    // Not JSON after all: some other sentence that starts with a brace.
    return undefined
  }
}

function classify({ code, message, retryAfterSeconds }: TurnError): Problem {
  switch (code) {
    case 'model-rate-limited':
    case 'too-many-turns':
      return { kind: 'rate-limited', seconds: retryAfterSeconds }
    case 'turn-running':
      return { kind: 'busy' }
    case 'model-blocked':
      return { kind: 'blocked' }
    case 'unauthenticated':
      return { kind: 'signed-out' }
    case 'bad-request':
    case 'too-large':
    case 'too-many-live-chats':
      return { kind: 'refused', message }
    default:
      return { kind: 'unavailable' }
  }
}

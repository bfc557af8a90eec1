import type { UIMessage } from 'ai'

import { isCall } from './call.ts'
import { hasActed, lastAnswer } from './has-acted.ts'
import { readFailure } from './problem.ts'

type Shown = Pick<UIMessage, 'id' | 'role' | 'parts' | 'metadata'>

/** What the server has of a chat. */
export interface SavedChat<Message> {
  readonly messages: readonly Message[]
  readonly running: boolean
}

/** How to go on after a problem. */
export type Recovery<Message> =
  /** The server never got the last message of the person. */
  | { readonly step: 'resend'; readonly message: Message; readonly before: readonly Message[] }
  /** The answer is still being written. */
  | { readonly step: 'resume'; readonly messages: readonly Message[] }
  /** The answer was finished meanwhile, or something was done in it that must not be done again. */
  | { readonly step: 'show'; readonly messages: readonly Message[] }
  /** The answer failed and has to be made again. */
  | { readonly step: 'regenerate' }

/** Compares what the page shows with what the server has. */
export function planRecovery<Message extends Shown>(
  shown: readonly Message[],
  { messages, running }: SavedChat<Message>,
): Recovery<Message> {
  const asked = shown.findLast(({ role }) => role === 'user')
  if (asked && !messages.some(({ id }) => id === asked.id))
    return { step: 'resend', message: asked, before: shown.slice(0, shown.indexOf(asked)) }
  if (running) return { step: 'resume', messages }
  const last = messages.at(-1)
  const isMissing = last?.role === 'user' || readFailure(last) !== undefined
  return isMissing && !hasActed(messages) ? { step: 'regenerate' } : { step: 'show', messages }
}

/** The same by what is shown alone: what the server did since is not known, and what it may have done is not made anew. */
export function planRecoveryAlone(
  shown: readonly Shown[],
  how: { readonly isDisconnected: boolean },
): 'resume' | 'keep' | 'regenerate' {
  if (how.isDisconnected) return 'resume'
  return lastAnswer(shown).some(({ parts }) => parts.some(isCall)) ? 'keep' : 'regenerate'
}

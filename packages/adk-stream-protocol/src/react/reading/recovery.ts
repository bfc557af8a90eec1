import type { UIMessage } from 'ai'

import { isCall } from './call.ts'
import { hasRunCall, lastReply } from './has-run-call.ts'
import { readFailure } from './problem.ts'

type ShownMessage = Pick<UIMessage, 'id' | 'role' | 'parts' | 'metadata'>

/** A chat as the server has stored it. */
export interface SavedChat<Message> {
  readonly messages: readonly Message[]
  readonly running: boolean
}

/** The step that recovers a chat from a problem. */
export type Recovery<Message> =
  /** The server did not receive the last user message. */
  | { readonly step: 'resend'; readonly message: Message; readonly before: readonly Message[] }
  /** The reply is still running. */
  | { readonly step: 'resume'; readonly messages: readonly Message[] }
  /** The reply has finished meanwhile, or a call ran in it that must not be repeated. */
  | { readonly step: 'show'; readonly messages: readonly Message[] }
  /** The reply failed and no call ran in it. */
  | { readonly step: 'regenerate' }

/** Returns the recovery step, from the messages of the page and those of the server. */
export function planRecovery<Message extends ShownMessage>(
  shown: readonly Message[],
  { messages, running }: SavedChat<Message>,
): Recovery<Message> {
  const lastUserMessage = shown.findLast(({ role }) => role === 'user')
  if (lastUserMessage && !messages.some(({ id }) => id === lastUserMessage.id))
    return {
      step: 'resend',
      message: lastUserMessage,
      before: shown.slice(0, shown.indexOf(lastUserMessage)),
    }
  if (running) return { step: 'resume', messages }
  const last = messages.at(-1)
  const isMissing = last?.role === 'user' || readFailure(last) !== undefined
  return isMissing && !hasRunCall(messages) ? { step: 'regenerate' } : { step: 'show', messages }
}

/** Returns the recovery step without the server's messages. Does not regenerate a reply with calls, because they may have run. */
export function planLocalRecovery(
  shown: readonly ShownMessage[],
  { isDisconnected }: { readonly isDisconnected: boolean },
): 'resume' | 'keep' | 'regenerate' {
  if (isDisconnected) return 'resume'
  return lastReply(shown).some(({ parts }) => parts.some(isCall)) ? 'keep' : 'regenerate'
}

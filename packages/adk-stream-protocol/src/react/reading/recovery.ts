import { isRecord } from './call.ts'

interface Shown {
  readonly id: string
  readonly role: string
  readonly metadata?: unknown
}

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
  /** The answer was finished meanwhile. */
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
  const hasFailed = isRecord(last?.metadata) && last.metadata['error'] !== undefined
  return last?.role === 'user' || hasFailed ? { step: 'regenerate' } : { step: 'show', messages }
}

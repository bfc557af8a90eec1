import type { SavedChat } from './chat-api.ts'
import type { Message } from './message.ts'

/** How to go on after a problem. */
export type Recovery =
  /** The server never got the last message of the user. */
  | { readonly step: 'resend'; readonly message: Message; readonly before: Message[] }
  /** The answer is still being written. */
  | { readonly step: 'resume'; readonly messages: Message[] }
  /** The answer was finished meanwhile. */
  | { readonly step: 'show'; readonly messages: Message[] }
  /** The answer failed and has to be made again. */
  | { readonly step: 'regenerate' }

/** Compares what the page shows with what the server has. */
export function planRecovery(shown: readonly Message[], saved: SavedChat | undefined): Recovery {
  const { messages, running } = saved ?? { messages: [], running: false }
  const asked = shown.findLast((message) => message.role === 'user')
  if (asked && !messages.some((message) => message.id === asked.id)) {
    return { step: 'resend', message: asked, before: shown.slice(0, shown.indexOf(asked)) }
  }
  if (running) return { step: 'resume', messages }
  const last = messages.at(-1)
  const failed = last?.role === 'user' || last?.metadata?.error !== undefined
  return failed ? { step: 'regenerate' } : { step: 'show', messages }
}

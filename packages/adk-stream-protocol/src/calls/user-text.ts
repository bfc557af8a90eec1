import type { Event } from '@google/adk'

import { shorten, UNTRANSCRIBED } from '../agent/history/chat-title.ts'
import { readNotes } from '../agent/history/event-notes.ts'
import type { ApprovalTerms } from '../approvals/approval.ts'

/** The maximum number of graphemes. */
const MAX_CHARACTERS = 500
/** The maximum length in UTF-16 code units. */
const MAX_LENGTH = 2_000

/**
 * Adds the message of the user that led to a call to its terms, if the policy shows it. Speech that is not yet transcribed is left
 * out: an earlier message would be misleading.
 */
export function withUserText(
  terms: ApprovalTerms,
  events: readonly Event[],
  messageId: string,
): ApprovalTerms {
  if (terms.showsUserText !== true) return terms
  const userText = findUserText(events, messageId)
  return userText === undefined ? terms : { ...terms, userText }
}

/** Returns the text of the user message that an assistant message replies to. */
function findUserText(events: readonly Event[], messageId: string): string | undefined {
  const event = events.findLast((candidate) => {
    // Only the bridge writes these notes. A workflow stores the input of its agents, which a model wrote, as user events too.
    const notes = readNotes(candidate)
    return (
      candidate.author === 'user' &&
      notes.userMessageId !== undefined &&
      notes.messageId === messageId
    )
  })
  const text = (event?.content?.parts ?? []).map((part) => part.text ?? '').join(' ')
  const line = shorten(text.slice(0, MAX_LENGTH * 2), MAX_CHARACTERS, MAX_LENGTH)
  return line === '' || line === UNTRANSCRIBED ? undefined : line
}

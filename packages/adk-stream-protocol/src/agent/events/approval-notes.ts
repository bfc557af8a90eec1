import type { Event } from '@google/adk'
import { createEvent } from '@google/adk'
import type { FunctionResponse } from '@google/genai'

import type { Approval } from '../../approvals/approval.ts'
import type { PreviewResult } from '../../approvals/policy-previews.ts'
import { assessRisk } from '../../approvals/risk.ts'
import { pickQuestion } from '../../protocol/question-terms.ts'
import type { AskedNote, DecidedNote, EventNotes } from './event-notes.ts'
import { carryInner, writeNotes } from './event-notes.ts'

/** Returns what a client needs to know about an approval request. */
export function toAskedNote(approval: Approval, made: PreviewResult): AskedNote {
  const { id: approvalId, toolCallId, deadline, terms } = approval
  const { hint, title, icon, payload, chain, path, offers } = terms
  return {
    approvalId,
    toolCallId,
    deadline,
    approvers: chain.reduce((sum, step) => sum + step.count, 0),
    ...(hint !== undefined && { hint }),
    ...(title !== undefined && { title }),
    ...assessRisk(approval, made.state === 'made' ? made.preview : undefined),
    ...(icon !== undefined && { icon }),
    ...(payload !== undefined && { payload }),
    ...pickQuestion(terms),
    ...(made.state !== 'none' && { hasPreview: true }),
    ...(made.state === 'made' && { preview: made.preview }),
    ...(path && { path: [...path] }),
    ...(offers && { offers: [...offers] }),
  }
}

/** Returns the notes with the result of a call that the session of the chat does not contain: of an agent used as a tool, or of a question. */
export function toEndingNotes(
  session: string,
  functionResponse: FunctionResponse,
  note: DecidedNote,
): EventNotes {
  return carryInner(session, toEndingEvent(functionResponse, note))
}

/** Creates the event with the result of a call in the session in which it was made. */
export function toEndingEvent(functionResponse: FunctionResponse, note: DecidedNote): Event {
  return createEvent({
    author: 'user',
    content: { role: 'user', parts: [{ functionResponse }] },
    customMetadata: writeNotes({ decided: [note] }),
  })
}

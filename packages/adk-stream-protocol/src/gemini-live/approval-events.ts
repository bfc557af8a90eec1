import type { Event, InvocationContext } from '@google/adk'
import { createEvent } from '@google/adk'

import type { Approval } from '../approvals/approval.ts'
import type { PreviewResult } from '../approvals/preview.ts'
import { CONFIRMATION_TOOL } from '../protocol/message.ts'
import { PENDING } from '../agent/call-responses.ts'
import { writeNotes } from '../agent/history/event-notes.ts'
import { toAskedNote } from '../calls/approval-events.ts'

/**
 * Returns the two events that ADK itself writes over SSE when a call needs approval: a placeholder result and the confirmation request.
 * So an approval requested in a live session can be decided in any mode, and after a restart.
 */
export function toApprovalEvents(
  approval: Approval,
  made: PreviewResult,
  { invocationId, agent, branch }: InvocationContext,
): readonly [placeholder: Event, request: Event] {
  const { id: approvalId, messageId, toolCallId: id, toolName: name, args, terms } = approval
  const toolConfirmation = { hint: terms.hint ?? `Approve ${name}?`, confirmed: false }
  const base = {
    invocationId,
    ...(agent && { author: agent.name }),
    ...(branch !== undefined && { branch }),
  }
  const actions = { requestedToolConfirmations: { [id]: toolConfirmation } }
  const placeholder = createEvent({
    ...base,
    content: { role: 'user', parts: [{ functionResponse: { id, name, response: PENDING } }] },
    actions,
    customMetadata: writeNotes({ pending: [id], messageId }),
  })
  const request = createEvent({
    ...base,
    content: {
      role: 'user',
      parts: [
        {
          functionCall: {
            id: approvalId,
            name: CONFIRMATION_TOOL,
            args: { originalFunctionCall: { id, name, args }, toolConfirmation },
          },
        },
      ],
    },
    longRunningToolIds: [approvalId],
    actions: { ...actions, skipSummarization: true },
    customMetadata: writeNotes({ asked: [toAskedNote(approval, made)], messageId }),
  })
  return [placeholder, request]
}

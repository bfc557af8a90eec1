import type { Event, InvocationContext } from '@google/adk'
import { createEvent } from '@google/adk'

import type { Approval } from '../approvals/approval.ts'
import type { PreviewResult } from '../approvals/preview.ts'
import { CONFIRMATION_TOOL } from '../protocol/message.ts'
import { PENDING, PENDING_INSIDE } from '../agent/call-responses.ts'
import type { EventNotes, PausedNote } from '../agent/history/event-notes.ts'
import { writeNotes } from '../agent/history/event-notes.ts'
import { toAskedNote } from '../calls/approval-events.ts'

/**
 * Returns the two events that ADK itself writes over SSE when a call needs approval: a placeholder result and the confirmation request.
 * So an approval requested in a live session can be decided in any mode, and after a restart.
 */
export function toApprovalEvents(
  approval: Approval,
  made: PreviewResult,
  context: InvocationContext,
): readonly [placeholder: Event, request: Event] {
  const { id, messageId, toolCallId, toolName: name, args, terms } = approval
  return toRequestEvents(context, {
    id,
    call: { id: toolCallId, name, args },
    hint: terms.hint ?? `Approve ${name}?`,
    response: PENDING,
    notes: { asked: [toAskedNote(approval, made)], messageId },
  })
}

/** Returns the same events for a call that waits for approvals inside the agent that it runs. */
export function toPauseEvents(
  paused: PausedNote,
  { name, args, messageId }: Pick<Request['call'], 'name' | 'args'> & { messageId: string },
  context: InvocationContext,
): readonly [placeholder: Event, request: Event] {
  return toRequestEvents(context, {
    id: paused.confirmationId,
    call: { id: paused.toolCallId, name, args },
    hint: `Wait for approvals inside ${name}.`,
    response: PENDING_INSIDE,
    notes: { asked: [], paused: [paused], messageId },
  })
}

/** A confirmation request. */
interface Request {
  readonly id: string
  readonly call: {
    readonly id: string
    readonly name: string
    readonly args: Readonly<Record<string, unknown>>
  }
  readonly hint: string
  /** The placeholder result of the call. */
  readonly response: Readonly<Record<string, unknown>>
  readonly notes: EventNotes & { readonly messageId: string }
}

function toRequestEvents(
  { invocationId, agent, branch }: InvocationContext,
  { id: requestId, call, hint, response, notes }: Request,
): readonly [placeholder: Event, request: Event] {
  const { id, name } = call
  const toolConfirmation = { hint, confirmed: false }
  const base = {
    invocationId,
    ...(agent && { author: agent.name }),
    ...(branch !== undefined && { branch }),
  }
  const actions = { requestedToolConfirmations: { [id]: toolConfirmation } }
  const functionResponse = { id, name, response: { ...response } }
  const placeholder = createEvent({
    ...base,
    content: { role: 'user', parts: [{ functionResponse }] },
    actions,
    customMetadata: writeNotes({ pending: [id], messageId: notes.messageId }),
  })
  const request = createEvent({
    ...base,
    content: {
      role: 'user',
      parts: [
        {
          functionCall: {
            id: requestId,
            name: CONFIRMATION_TOOL,
            args: { originalFunctionCall: call, toolConfirmation },
          },
        },
      ],
    },
    longRunningToolIds: [requestId],
    actions: { ...actions, skipSummarization: true },
    customMetadata: writeNotes(notes),
  })
  return [placeholder, request]
}

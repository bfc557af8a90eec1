import { toResponse } from '../adk/approval-answers.ts'
import type { DecidedNote } from '../adk/event-notes.ts'
import type { CallOutcome } from '../adk/run-call.ts'
import type { Approval } from '../approvals/approval.ts'

/** Why an approval is withdrawn whose call cannot go its way. */
export const CANNOT_GO_ON = 'the call could not be carried out'
export const TOOK_BACK = 'the conversation went on without it'

export const CANCELLED = { status: 'cancelled', error: `Cancelled: ${TOOK_BACK}.` } as const
export const UNWANTED = {
  status: 'cancelled',
  error: 'Cancelled, not run: the person stopped this answer.',
} as const
export const UNDER_WAY = {
  status: 'pending',
  note: 'Under way. The result does not come in this conversation.',
} as const
export const BROKEN = { error: 'The call could not be carried out.' } as const
export const NO_ANSWER = 'The browser did not answer in time.'

/** A call that ran, and whose outcome could not be recorded, may have taken effect. */
export function lostIfExecuting(approval: Approval): Approval {
  const { state } = approval
  return state.name === 'executing'
    ? { ...approval, state: { ...state, name: 'unknown' } }
    : approval
}

/** The result with what a person changed in the call: the model is to know what ran. */
export function resultOf(
  { by, result }: CallOutcome,
  edited: Readonly<Record<string, unknown>> | undefined,
): unknown {
  return edited && by === 'tool' ? { ...toResponse(result), edited_arguments: edited } : result
}

export function editOf(
  approval: Approval | undefined,
): Readonly<Record<string, unknown>> | undefined {
  return approval?.state.name === 'executing' ? approval.state.editedArgs : undefined
}

export function toApprovedNote(
  toolCallId: string,
  editedArgs: Readonly<Record<string, unknown>> | undefined,
): DecidedNote {
  return {
    toolCallId,
    state: 'approved',
    ...(editedArgs && { editedArgs: { ...editedArgs } }),
  }
}

import type { Context } from '@google/adk'
import { ToolConfirmation } from '@google/adk'

import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import { isRefusal } from '../approvals/refusal.ts'
import { toResponse } from '../agent/call-responses.ts'
import type { DecidedNote } from '../agent/history/event-notes.ts'
import type { CallOutcome } from './run-call.ts'

type Args = Readonly<Record<string, unknown>>

/** The arguments that an approver put in place of the model's, if any. */
export function getEditedArgs(approval: Approval | undefined): Args | undefined {
  return approval?.state.name === 'executing' ? approval.state.editedArgs : undefined
}

/** Confirms a call for its tool, with the approver's answer to its payload, or else with the payload that the tool proposed itself. */
export function confirmCall(toolContext: Context, { state, terms }: Approval): void {
  const approved = 'payload' in state ? state.payload : undefined
  const payload = approved ?? terms.payload
  toolContext.toolConfirmation = new ToolConfirmation({
    confirmed: true,
    ...(payload !== undefined && { payload }),
  })
}

/** What is noted beside the result of a call that was approved. */
export function toApprovedNote(approval: Approval): DecidedNote {
  const { toolCallId, state } = approval
  const editedArgs = getEditedArgs(approval)
  return {
    toolCallId,
    state: 'approved',
    ...(editedArgs && { editedArgs: { ...editedArgs } }),
    ...('payload' in state && state.payload !== undefined && { approvedPayload: state.payload }),
  }
}

/** The result with what a person changed in the call: the model is to know what ran. */
export function withEditedArgs({ by, result }: CallOutcome, editedArgs: Args | undefined): unknown {
  return editedArgs && by === 'tool'
    ? { ...toResponse(result), edited_arguments: editedArgs }
    : result
}

/**
 * Records what came of an approved call. False when this process has lost the call to another one, which has settled it
 * differently: then the outcome must be told to nobody.
 */
export async function recordOutcome(
  ledger: Ledger,
  approvalId: string,
  outcome: CallOutcome,
): Promise<boolean> {
  const recorded =
    outcome.by === 'failure'
      ? await ledger.fail(approvalId, outcome.error.message)
      : await ledger.succeed(approvalId, outcome.result ?? null)
  return !isRefusal(recorded)
}

/** Gives a call of ADK what the tool did by another context of the same call: its changes of state, its artifacts, where it leads. */
export function mergeContext(adopter: Context, { actions, invocationContext }: Context): void {
  const { stateDelta, artifactDelta, requestedAuthConfigs, requestedToolConfirmations, ...rest } =
    actions
  // Not into the delta alone: the next call of this run reads what this one has set.
  for (const [key, value] of Object.entries(stateDelta)) adopter.state.set(key, value)
  Object.assign(adopter.actions.artifactDelta, artifactDelta)
  Object.assign(adopter.actions.requestedAuthConfigs, requestedAuthConfigs)
  Object.assign(adopter.actions.requestedToolConfirmations, requestedToolConfirmations)
  Object.assign(adopter.actions, rest)
  if (invocationContext.endInvocation) adopter.invocationContext.endInvocation = true
}

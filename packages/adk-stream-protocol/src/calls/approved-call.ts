import type { Context } from '@google/adk'
import { ToolConfirmation } from '@google/adk'

import { toResponse } from '../agent/call-responses.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { Approval, Refusal } from '../approvals/approval.ts'
import { isRefusal } from '../approvals/approval.ts'
import type { Call } from '../approvals/digest.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { JudgeOptions } from './judge-outcome.ts'
import { judgeOutcome } from './judge-outcome.ts'
import { readLateSignIn } from './late-sign-ins.ts'
import type { CallOutcome } from './run-call.ts'

type Args = Readonly<Record<string, unknown>>

/** Returns the call as the ledger identifies it. */
export function toClaim({ tool, toolArgs: args, toolContext }: ToolCall): Call {
  const chat = chatOf(toolContext.invocationContext.session)
  return { chat, toolCallId: toolContext.functionCallId ?? '', toolName: tool.name, args }
}

/** Returns the call to run: with the arguments as the approver edited them. */
export function withEdits(call: ToolCall, approval: Approval | undefined): ToolCall {
  const editedArgs = getEditedArgs(approval)
  return editedArgs ? { ...call, toolArgs: { ...editedArgs } } : call
}

/** Returns the arguments as the approver edited them. Returns undefined if they were not edited. */
export function getEditedArgs(approval: Approval | undefined): Args | undefined {
  return approval && 'editedArgs' in approval.state ? approval.state.editedArgs : undefined
}

/** Confirms a call for its tool, with the approver's response to the payload, or else with the payload that the tool proposed. */
export function confirmCall(toolContext: Context, { state, terms }: Approval): void {
  const approved = 'payload' in state ? state.payload : undefined
  const payload = approved ?? terms.payload
  toolContext.toolConfirmation = new ToolConfirmation({
    confirmed: true,
    ...(payload !== undefined && { payload }),
  })
}

/** Adds the edited arguments to a result, so that the model knows what ran. */
export function withEditedArgs(
  { by, result }: CallOutcome,
  approval: Approval | undefined,
): unknown {
  const editedArgs = getEditedArgs(approval)
  return editedArgs && by === 'tool' && !readLateSignIn(result)
    ? { ...toResponse(result), edited_arguments: editedArgs }
    : result
}

/**
 * Records the outcome of an approved call, and returns the approval with it. A tool fails if it throws or if its result
 * reports a failure. Returns undefined if another process has taken over and settled the call. The outcome must not be
 * reported then.
 */
export async function recordOutcome(
  ledger: Ledger,
  approval: Approval,
  { outcome, judge }: { readonly outcome: CallOutcome; readonly judge: JudgeOptions },
): Promise<Approval | undefined> {
  const recorded = await record(ledger, approval, { outcome, judge })
  return isRefusal(recorded) ? undefined : recorded
}

async function record(
  ledger: Ledger,
  approval: Approval,
  { outcome, judge }: { readonly outcome: CallOutcome; readonly judge: JudgeOptions },
): Promise<Approval | Refusal> {
  const { id } = approval
  if (outcome.by === 'failure') return ledger.fail(id, outcome.error.message)
  // The call waits for a sign-in, whose question gets the outcome.
  if (readLateSignIn(outcome.result)) return ledger.succeed(id, outcome.result)
  const { failure, receipt } = await judgeOutcome(approval, outcome.result, judge)
  const output = withEditedArgs(outcome, approval) ?? null
  return failure === undefined
    ? ledger.succeed(id, output, receipt)
    : ledger.fail(id, failure, { output, ...(receipt && { receipt }) })
}

/** Copies the effects of a call from another context of the same call: state changes, artifacts, requests and transfers. */
export function mergeContext(adopter: Context, { actions, invocationContext }: Context): void {
  const { stateDelta, artifactDelta, requestedAuthConfigs, requestedToolConfirmations, ...rest } =
    actions
  // `state.set` also updates the session state, which the next call of this run reads.
  for (const [key, value] of Object.entries(stateDelta)) adopter.state.set(key, value)
  Object.assign(adopter.actions.artifactDelta, artifactDelta)
  Object.assign(adopter.actions.requestedAuthConfigs, requestedAuthConfigs)
  Object.assign(adopter.actions.requestedToolConfirmations, requestedToolConfirmations)
  Object.assign(adopter.actions, rest)
  if (invocationContext.endInvocation) adopter.invocationContext.endInvocation = true
}

import type { Content, FunctionResponse } from '@google/genai'

import { toResponse } from '../../agent/call-responses.ts'
import { toBrowserResponse } from '../../calls/browser-output.ts'
import { asBrowserTool } from '../../calls/browser-tool.ts'
import { CONFIRMATION_TOOL } from '../../protocol/confirmation-tool.ts'
import type { Call, Translation } from '../../agent/translate/translation.ts'
import type { Approval, ApprovalChat } from '../../approvals/approval.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { OutputAnswer } from '../../protocol/read-answers.ts'
import type { AgentHost } from './agent-host.ts'
import type { Backend } from './backend.ts'

/** What came for the calls of a turn. Decisions are in the ledger. */
export interface TurnInputs {
  readonly chat: ApprovalChat
  /** What a client gave for its browser tools. */
  readonly outputs: readonly OutputAnswer[]
  /** The final result of a long-running call, from the application. */
  readonly completion?: OutputAnswer | undefined
}

/**
 * What a paused turn is answered with, as ADK wants it: confirmations for what was decided, results for what ran in the client.
 * Nothing while all that it waits for is still open.
 */
export async function collectResponses(
  { calls }: Translation,
  { ledger, host, findTool }: Backend,
  { chat, outputs, completion }: TurnInputs,
): Promise<Content | undefined> {
  const approvals: Approval[] = []
  const results: FunctionResponse[] = []
  for (const [id, { toolName: name, state, completed }] of calls) {
    if (completion?.toolCallId === id && !completed)
      results.push({ id, name, response: toCompletion(completion.result) })
    const approval = state === 'asked' ? await ledger.findByCall(chat, id) : undefined
    if (approval) approvals.push(approval)
    const given = state === 'waiting' && outputs.find((output) => output.toolCallId === id)
    const tool = given ? await findTool(chat, name) : undefined
    const browser = tool && asBrowserTool(tool)
    // BT3: what another long-running tool waits for is not the client's to give.
    if (given && browser)
      results.push({ id, name, response: toBrowserResponse(given.result, browser) })
  }
  // ADK hides an event with a confirmation from the model, so results go in one of their own, and first.
  const responses = results.length > 0 ? results : toConfirmations(approvals, host)
  if (responses.length === 0) return undefined
  return { role: 'user', parts: responses.map((functionResponse) => ({ functionResponse })) }
}

function toCompletion(result: OutputAnswer['result']): Record<string, unknown> {
  return 'errorText' in result ? { error: result.errorText } : toResponse(result.output)
}

/** The first output that a client sent for a call that waits for the application, not for the client (BT3). */
export async function findForeignOutput(
  { calls }: Translation,
  { findTool }: Pick<Backend, 'findTool'>,
  { chat, outputs }: Pick<TurnInputs, 'chat' | 'outputs'>,
): Promise<{ readonly toolName: string } | undefined> {
  for (const { toolCallId } of outputs) {
    const call = calls.get(toolCallId)
    if (call?.state !== 'waiting') continue
    const tool = await findTool(chat, call.toolName)
    if (!tool || !asBrowserTool(tool)) return call
  }
  return undefined
}

/** Refuses the output of a client for a call that only the application completes. */
export function refuseForeignOutput({ toolName }: { readonly toolName: string }): ProtocolError {
  return new ProtocolError('not-client-output', {
    message: `A page cannot give the result of ${toolName}: the application on the server completes this call (bridge.completeCall). Nothing was changed.`,
  })
}

/** Says why the application cannot complete a call; nothing if it can. */
export async function findCompletionFault(
  call: Call | undefined,
  { findTool }: Pick<Backend, 'findTool'>,
  chat: ApprovalChat,
): Promise<ProtocolError | undefined> {
  if (!call) return new ProtocolError('unknown-call')
  if (call.completed) return new ProtocolError('call-completed')
  const tool = await findTool(chat, call.toolName)
  const isOpen = call.state === 'waiting' || (call.state === 'settled' && tool?.isLongRunning)
  const hasRun = call.approval === undefined || call.approval.state === 'approved'
  if (isOpen && hasRun && !(tool && asBrowserTool(tool))) return undefined
  return new ProtocolError('not-completable')
}

/** AP65: what has begun comes alone, and the rest after it: calls run one after the other, on the state that the last one left. */
function toConfirmations(
  approvals: readonly Approval[],
  host: Pick<AgentHost, 'isRunning'>,
): FunctionResponse[] {
  const begun = approvals.filter((approval) => host.isRunning(approval))
  if (begun.length > 0) return begun.map(({ id }) => toConfirmation(id, true))
  return approvals
    .filter(isDecided)
    .map(({ id, state }) => toConfirmation(id, state.name === 'approved'))
}

/** Whether a turn may go on by it: it was decided, or it ended without a decision. */
function isDecided({ state }: Approval): boolean {
  return state.name !== 'requested' && state.name !== 'executing'
}

/** Whether its turn may go on by it here: this process may also have started the call at its decision. */
function canResume(approval: Approval, host: Pick<AgentHost, 'isRunning'>): boolean {
  return isDecided(approval) || host.isRunning(approval)
}

/**
 * Whether a paused turn only waits for calls that run somewhere: in a run that was stopped, or in a process that died. A client
 * that goes on with it would hear nothing, and ask again at once (AP11).
 */
export async function isBlockedByRunningCall(
  { calls }: Translation,
  { ledger, host }: Pick<Backend, 'ledger' | 'host'>,
  chat: ApprovalChat,
): Promise<boolean> {
  const approvals: Approval[] = []
  for (const [id, { state }] of calls) {
    const approval = state === 'asked' ? await ledger.findByCall(chat, id) : undefined
    if (approval) approvals.push(approval)
  }
  const isRunning = approvals.some(({ state }) => state.name === 'executing')
  return isRunning && !approvals.some((approval) => canResume(approval, host))
}

// The ledger decides whether the call runs; ADK only has to come by.
function toConfirmation(id: string, confirmed: boolean): FunctionResponse {
  return { id, name: CONFIRMATION_TOOL, response: { confirmed } }
}

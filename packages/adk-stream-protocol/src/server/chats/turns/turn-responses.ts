import type { Content, FunctionResponse } from '@google/genai'

import { toResponse } from '../../../agent/call-responses.ts'
import type { Continuation } from '../../../agent/history/interrupted-turn.ts'
import { toBrowserResponse } from '../../../calls/browser-tool.ts'
import { asBrowserTool } from '../../../calls/browser-tool.ts'
import { CONFIRMATION_TOOL } from '../../../protocol/message.ts'
import type { Call, Translation } from '../../../agent/translate/translation.ts'
import type { Approval } from '../../../approvals/approval.ts'
import { isDecided } from '../../../approvals/approval.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { OutputResponse } from '../../../protocol/read-responses.ts'
import type { AgentHost } from './agent-host.ts'
import type { Backend } from '../backend.ts'
import { isInputQuestion, readAnswer } from './question-answers.ts'
import type { AppChatRef } from '../../../shared/chat-ref.ts'
import { listResumable } from './stored-calls.ts'

/** The inputs for the calls of a turn. Decisions are in the ledger. */
export interface TurnInputs {
  readonly chat: AppChatRef
  /** The results of browser tools. */
  readonly outputs: readonly OutputResponse[]
  /** The final result of a long-running call, from the application. */
  readonly completion?: OutputResponse | undefined
}

/**
 * Converts responses to the content that ADK resumes a paused turn with: confirmations for decided approvals, results for browser calls.
 * Returns undefined if there is no response yet.
 */
export async function collectResponses(
  { calls }: Translation,
  { ledger, host, findTool }: Backend,
  { chat, outputs, completion }: TurnInputs,
): Promise<Content | undefined> {
  const approvals: Approval[] = []
  const results: FunctionResponse[] = []
  for (const [id, { toolName: name, state, completed, madeBy }] of calls) {
    if (completion?.toolCallId === id && !completed)
      results.push({ id, name, response: toCompletion(completion.result) })
    const approval = state === 'asked' ? await ledger.findByCall(chat, id) : undefined
    // The agent inside takes the answer itself, when its call resumes.
    const isOwnQuestion = approval && isInputQuestion(approval) && madeBy === undefined
    const answer = isOwnQuestion ? readAnswer(approval) : undefined
    if (answer) results.push({ id, name, response: answer })
    else if (approval && !isOwnQuestion) approvals.push(approval)
    const submitted = state === 'waiting' && outputs.find((output) => output.toolCallId === id)
    const tool = submitted ? await findTool(chat, name) : undefined
    const browser = tool && asBrowserTool(tool)
    // BT3: only the application completes other long-running tools.
    if (submitted && browser)
      results.push({ id, name, response: toBrowserResponse(submitted.result, browser) })
  }
  // ADK hides events with confirmations from the model, so results are sent first, in an event of their own.
  const responses = results.length > 0 ? results : toConfirmations(approvals, calls, host)
  if (responses.length === 0) return undefined
  return { role: 'user', parts: responses.map((functionResponse) => ({ functionResponse })) }
}

function toCompletion(result: OutputResponse['result']): Record<string, unknown> {
  return 'errorText' in result ? { error: result.errorText } : toResponse(result.output)
}

/** Returns the first call for which a client sent an output although only the application may complete it (BT3). */
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

/** Creates the error for a client's output of a call that only the application completes. */
export function refuseForeignOutput({ toolName }: { readonly toolName: string }): ProtocolError {
  return new ProtocolError('not-client-output', {
    message: `A page cannot submit the result of ${toolName}: the application on the server completes this call (bridge.completeCall). Nothing was changed.`,
  })
}

/** Returns an error if the application cannot complete a call. */
export async function findCompletionFault(
  call: Call | undefined,
  { findTool }: Pick<Backend, 'findTool'>,
  chat: AppChatRef,
): Promise<ProtocolError | undefined> {
  if (!call) return new ProtocolError('unknown-call')
  if (call.completed) return new ProtocolError('call-completed')
  // The agent that made the call does not wait for it.
  if (call.madeBy !== undefined) return new ProtocolError('not-completable')
  const tool = await findTool(chat, call.toolName)
  const isOpen = call.state === 'waiting' || (call.state === 'settled' && tool?.isLongRunning)
  const hasRun = call.approval === undefined || call.approval.state === 'approved'
  if (isOpen && hasRun && !(tool && asBrowserTool(tool))) return undefined
  return new ProtocolError('not-completable')
}

/** AP65: calls run one after the other, each on the state that the previous one left. A call that has started is confirmed first. */
function toConfirmations(
  approvals: readonly Approval[],
  calls: Translation['calls'],
  host: Pick<AgentHost, 'isRunning'>,
): FunctionResponse[] {
  const running = approvals.filter((approval) => host.isRunning(approval))
  if (running.length > 0) return running.map(({ id }) => toConfirmation(id, true))
  const decided = approvals.filter(isDecided)
  const isNested = ({ toolCallId }: Approval): boolean =>
    calls.get(toolCallId)?.madeBy !== undefined
  return [
    ...decided
      .filter((approval) => !isNested(approval))
      .map(({ id, state }) => toConfirmation(id, state.name === 'approved')),
    ...listResumable(calls, decided).map((id) => toConfirmation(id, true)),
  ]
}

/** Whether the turn of an approval can resume in this process, which may have started the call at the decision. */
function canResume(approval: Approval, host: Pick<AgentHost, 'isRunning'>): boolean {
  return isDecided(approval) || host.isRunning(approval)
}

/**
 * Whether a paused turn waits only for calls that still run: in a stopped run, or in a crashed process. A client that resumes it would
 * receive nothing and retry at once (AP11).
 */
export async function isBlockedByRunningCall(
  { calls }: Translation,
  { ledger, host }: Pick<Backend, 'ledger' | 'host'>,
  chat: AppChatRef,
): Promise<boolean> {
  const approvals: Approval[] = []
  for (const [id, { state }] of calls) {
    const approval = state === 'asked' ? await ledger.findByCall(chat, id) : undefined
    if (approval) approvals.push(approval)
  }
  const isRunning = approvals.some(({ state }) => state.name === 'executing')
  return isRunning && !approvals.some((approval) => canResume(approval, host))
}

/** Returns the content that continues a turn. The ledger knows how a confirmed call has ended, so it does not run again. */
export function toContinuation(found: Continuation): Content {
  const functionResponse =
    'answer' in found ? found.answer : toConfirmation(found.confirmationId, true)
  return { role: 'user', parts: [{ functionResponse }] }
}

// The ledger decides whether the call runs. The confirmation only makes ADK call the tool.
function toConfirmation(id: string, confirmed: boolean): FunctionResponse {
  return { id, name: CONFIRMATION_TOOL, response: { confirmed } }
}

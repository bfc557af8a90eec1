import type { BaseTool, Event, LlmAgent, RunConfig, Runner, Session } from '@google/adk'
import {
  Context,
  getFunctionCalls,
  getFunctionResponses,
  InvocationContext,
  isAgentTool,
  isBaseAgent,
  isBaseTool,
  isLlmAgent,
  ToolConfirmation,
} from '@google/adk'
import type { FunctionCall } from '@google/genai'

import { toStoredResponse } from '../agent/call-responses.ts'
import { inheritServices } from '../agent/agent-services.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { Approval, Refusal } from '../approvals/approval.ts'
import { isRefusal } from '../approvals/approval.ts'
import type { Call } from '../approvals/digest.ts'
import type { Ledger } from '../approvals/ledger.ts'
import { argsToRun } from '../approvals/next-approval.ts'
import { PolicyPreview } from '../approvals/preview-schema.ts'
import type { PolicyFunctions, PreviewContext } from '../approvals/policy.ts'
import { resolveVerdict, toPolicyCall } from '../approvals/policy.ts'
import { CONFIRMATION_TOOL, readReportedFailure } from '../protocol/message.ts'
import type { Preview } from '../protocol/preview.ts'
import { callInTime } from '../shared/async.ts'
import type { TermsOptions } from './call-kind.ts'
import { readFollowUp } from './follow-up-results.ts'
import type { CallOutcome } from './run-call.ts'

type Args = Readonly<Record<string, unknown>>

interface CallEnvironment {
  readonly runner: Runner
  readonly session: Session
  readonly artifacts: InvocationContext['artifactService']
  readonly runConfig: RunConfig
  readonly signal: AbortSignal
}

/**
 * Prepares an approved call to run as ADK would run it on resume. Returns undefined if only ADK can run it: the call
 * is not open in the session, its agent has callbacks that may end the run first, its tools come from a toolset, the
 * tool is an agent, which may pause, or the tool may return without a result.
 */
export function prepareCall(
  approval: Approval,
  { runner, session, ...around }: CallEnvironment,
): ToolCall | undefined {
  const open = findOpenCall(session.events, approval)
  const agent = open && findAgent(runner.agent, open.event.author)
  const tool = agent && findOwnTool(agent, approval.toolName)
  if (!tool || tool.isLongRunning || isAgentTool(tool)) return undefined
  const { sessionService, pluginManager } = runner
  const { artifacts, runConfig, signal } = around
  const invocationContext = new InvocationContext({
    invocationId: open.event.invocationId,
    agent,
    session,
    userContent: toConfirmation(approval),
    runConfig,
    sessionService,
    pluginManager,
    abortSignal: signal,
    ...(artifacts && { artifactService: artifacts }),
    ...inheritServices(runner),
  })
  const toolContext = new Context({
    invocationContext,
    functionCallId: approval.toolCallId,
    toolConfirmation: new ToolConfirmation({ confirmed: true }),
  })
  return { tool, toolArgs: open.call.args ?? {}, toolContext }
}

/** Returns the agent with this name, unless it has callbacks that run before its tools. */
function findAgent(root: Runner['agent'], name = ''): LlmAgent | undefined {
  const agent = isBaseAgent(root) ? root.findAgent(name) : undefined
  return isLlmAgent(agent) && agent.beforeAgentCallback.length === 0 ? agent : undefined
}

/** Returns the call of an approval request, unless it has a response. The agent that made the call also made the request. */
function findOpenCall(
  events: readonly Event[],
  { id, toolCallId, toolName }: Approval,
): { readonly event: Event; readonly call: FunctionCall } | undefined {
  const asking = events.findLastIndex((event) =>
    getFunctionCalls(event).some((call) => call.id === id && call.name === CONFIRMATION_TOOL),
  )
  const author = events[asking]?.author
  const isAnswered = events
    .slice(asking + 1)
    .some((event) => getFunctionResponses(event).some((response) => response.id === toolCallId))
  if (author === undefined || isAnswered) return undefined
  for (const event of events.slice(0, asking)) {
    const call = getFunctionCalls(event).find((it) => it.id === toolCallId)
    if (call && event.author === author) return call.name === toolName ? { event, call } : undefined
  }
  return undefined
}

/** Returns the last tool with this name, as ADK does. ADK creates the tools of a toolset or node for each run. */
function findOwnTool({ tools }: LlmAgent, toolName: string): BaseTool | undefined {
  const own = tools.filter((tool) => isBaseTool(tool))
  return own.length === tools.length ? own.findLast(({ name }) => name === toolName) : undefined
}

function toConfirmation({ id }: Approval) {
  const functionResponse = { id, name: CONFIRMATION_TOOL, response: { confirmed: true } }
  return { role: 'user', parts: [{ functionResponse }] }
}

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
  return editedArgs && by === 'tool' && !readFollowUp(result)
    ? { ...toStoredResponse(result), edited_arguments: editedArgs }
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
  // The call waits for a follow-up, whose question gets the outcome.
  if (readFollowUp(outcome.result)) return ledger.succeed(id, outcome.result)
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

/** Whether a result reports a failure, and what the call did in words of the policy. */
interface Judgement {
  readonly failure?: string
  readonly receipt?: Preview
}

export type JudgeOptions = Pick<TermsOptions, 'policy' | 'onError'>

/**
 * Judges the result of an approved call: by the policy's `isFailure`, or otherwise by the form of the result. A policy that fails
 * does not change the outcome of a call that has run: its error goes to `onError`.
 */
async function judgeOutcome(
  approval: Approval,
  output: unknown,
  { policy, onError }: JudgeOptions,
): Promise<Judgement> {
  const { chat, toolName, terms } = approval
  const call = { chat, toolName, args: argsToRun(approval), claims: terms.claims }
  const verdict = terms.readsResult
    ? await resolveVerdict(policy, call, { required: () => false, onError })
    : undefined
  const { isFailure, receipt }: PolicyFunctions = verdict?.functions ?? {}
  const context: PreviewContext = { ...toPolicyCall(call), reader: chat.principalId }
  const attempt = async <Result>(name: string, run: () => Result | Promise<Result>) =>
    callInTime(`\`${name}\` of the policy`, run).catch((error: unknown) => {
      onError(error)
      return undefined
    })
  const reported = readReportedFailure(output)
  const judged = isFailure && (await attempt('isFailure', () => isFailure(output, context)))
  const hasFailed = typeof judged === 'boolean' ? judged : reported !== undefined
  const made =
    receipt &&
    (await attempt('receipt', async () => {
      const read = await receipt(output, context)
      return read && PolicyPreview.parse(read)
    }))
  return {
    ...(hasFailed && { failure: reported?.reason ?? 'The result reports a failure.' }),
    ...(made && { receipt: made }),
  }
}

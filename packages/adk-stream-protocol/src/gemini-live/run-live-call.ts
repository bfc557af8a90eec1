import type { BaseAgent, InvocationContextParams, PluginManager } from '@google/adk'
import { Context, InvocationContext, isLlmAgent } from '@google/adk'

import { toResponse } from '../agent/call-responses.ts'
import type { CallOutcome } from '../calls/run-call.ts'
import { runCall } from '../calls/run-call.ts'
import { toError } from '../agent/adk-workarounds/guard-tool.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { SignInCalls } from '../calls/sign-in-calls.ts'
import type { ToolErrors } from '../calls/tool-errors.ts'

/** The host's agent, plugins and error handling. */
export interface CallHost {
  /** The original agent. The live run has a copy without tool callbacks. */
  readonly agent: BaseAgent
  readonly hostPlugins: PluginManager
  readonly errors: ToolErrors
  readonly signIns?: SignInCalls | undefined
  /** Runs the agent of an `AgentTool`. Called before a call runs. */
  readonly nest: (call: ToolCall) => void
  readonly onError: (error: unknown) => void
}

/** Records the outcome of a call before its `after` callbacks run. */
export type RecordOutcome = (outcome: CallOutcome) => Promise<void>

/**
 * Runs a call of a live session with the host's callbacks, as ADK does in other runs. If a `before` callback throws, the call fails. If an
 * `after` callback throws, the outcome stays unchanged.
 */
export async function runLiveCall(
  { tool, toolArgs, toolContext }: ToolCall,
  { agent: root, hostPlugins, onError, errors, signIns, nest }: CallHost,
  record: RecordOutcome,
): Promise<CallOutcome> {
  const { invocationContext, functionCallId, toolConfirmation, actions } = toolContext
  const agent = root.findAgent(invocationContext.agent?.name ?? '') ?? root
  const context = new Context({
    invocationContext: createContext(invocationContext, { agent, pluginManager: hostPlugins }),
    eventActions: actions,
    ...(functionCallId !== undefined && { functionCallId }),
    ...(toolConfirmation && { toolConfirmation }),
  })
  const call = { tool, toolArgs, toolContext: context }
  signIns?.prepare(call)
  nest(call)
  let outcome: CallOutcome
  try {
    outcome = await runCall(call, errors)
  } catch (thrown) {
    const failure = toFailure(call, thrown, errors)
    await record(failure)
    return failure
  }
  await record(outcome)
  try {
    const changed = await runAfterCallbacks(call, outcome, agent)
    return changed === undefined ? outcome : { ...outcome, result: changed }
  } catch (error) {
    onError(error)
    return outcome
  }
}

function toFailure(call: ToolCall, thrown: unknown, errors: ToolErrors): CallOutcome {
  const error = toError(thrown)
  const result = errors.respond(call, error)
  return { by: 'failure', result, error, hidden: errors.hasResponded(call.toolContext) }
}

/** Copies the run's context with changes, as ADK does for sub-agents. */
function createContext(
  parent: InvocationContext,
  change: Partial<InvocationContextParams>,
): InvocationContext {
  const fields: InvocationContextParams = Object.assign({}, parent)
  return new InvocationContext({ ...fields, ...change })
}

async function runAfterCallbacks(
  { tool, toolArgs, toolContext }: ToolCall,
  { result }: CallOutcome,
  agent: BaseAgent,
): Promise<unknown> {
  // ADK passes the tool's result as an object, or undefined.
  const response = result === undefined ? undefined : toResponse(result)
  const params = { tool, toolArgs, toolContext, result: response as Record<string, unknown> }
  const changed = await toolContext.invocationContext.pluginManager.runAfterToolCallback(params)
  if (changed) return changed
  for (const callback of isLlmAgent(agent) ? agent.canonicalAfterToolCallbacks : []) {
    const replacement = await callback({
      tool,
      args: toolArgs,
      context: toolContext,
      response: params.result,
    })
    if (replacement) return replacement
  }
  return undefined
}

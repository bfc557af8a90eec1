import type { BaseAgent, InvocationContextParams, PluginManager } from '@google/adk'
import { Context, InvocationContext, isLlmAgent } from '@google/adk'

import { toResponse } from '../adk/approval-answers.ts'
import type { CallOutcome } from '../adk/run-call.ts'
import { runCall } from '../adk/run-call.ts'
import { toError } from '../adk/to-error.ts'
import type { ToolCall } from '../adk/tool-call.ts'
import type { ToolErrors } from '../adk/tool-errors.ts'

/** What the host put around its tools. */
export interface CallHost {
  /** The agent as the host made it; a live run has a copy without the callbacks. */
  readonly agent: BaseAgent
  readonly hosted: PluginManager
  readonly errors: ToolErrors
  readonly onError: (error: unknown) => void
}

/** Hears what came of a call, before the callbacks after it. */
export type Witness = (outcome: CallOutcome) => Promise<void>

/**
 * Runs a call of a live run with the callbacks of the host around it, as ADK has them in a run that is not live. A callback that throws
 * before the tool is the failure of the call; one that throws after it leaves the outcome as it is.
 */
export async function executeCall(
  { tool, toolArgs, toolContext }: ToolCall,
  { agent: root, hosted, onError, errors }: CallHost,
  witness: Witness,
): Promise<CallOutcome> {
  const { invocationContext, functionCallId, toolConfirmation, actions } = toolContext
  const agent = root.findAgent(invocationContext.agent?.name ?? '') ?? root
  const context = new Context({
    invocationContext: createContext(invocationContext, { agent, pluginManager: hosted }),
    eventActions: actions,
    ...(functionCallId !== undefined && { functionCallId }),
    ...(toolConfirmation && { toolConfirmation }),
  })
  const call = { tool, toolArgs, toolContext: context }
  let outcome: CallOutcome
  try {
    outcome = await runCall(call, errors)
  } catch (thrown) {
    const failure = toFailure(call, thrown, errors)
    await witness(failure)
    return failure
  }
  await witness(outcome)
  try {
    const changed = await askAfter(call, outcome, agent)
    return changed === undefined ? outcome : { ...outcome, result: changed }
  } catch (error) {
    onError(error)
    return outcome
  }
}

function toFailure(call: ToolCall, thrown: unknown, errors: ToolErrors): CallOutcome {
  const error = toError(thrown)
  const result = errors.answer(call, error)
  return { by: 'failure', result, error, hidden: errors.hasAnswered(call.toolContext) }
}

/** The context of the run with something else in it: ADK itself makes the contexts of sub-agents so. */
function createContext(
  parent: InvocationContext,
  change: Partial<InvocationContextParams>,
): InvocationContext {
  const fields: InvocationContextParams = Object.assign({}, parent)
  return new InvocationContext({ ...fields, ...change })
}

async function askAfter(
  { tool, toolArgs, toolContext }: ToolCall,
  { result }: CallOutcome,
  agent: BaseAgent,
): Promise<unknown> {
  // ADK hands over what a tool returned as an object, and nothing for nothing.
  const response = result === undefined ? undefined : toResponse(result)
  const params = { tool, toolArgs, toolContext, result: response as Record<string, unknown> }
  const changed = await toolContext.invocationContext.pluginManager.runAfterToolCallback(params)
  if (changed) return changed
  for (const callback of isLlmAgent(agent) ? agent.canonicalAfterToolCallbacks : []) {
    const answer = await callback({
      tool,
      args: toolArgs,
      context: toolContext,
      response: params.result,
    })
    if (answer) return answer
  }
  return undefined
}

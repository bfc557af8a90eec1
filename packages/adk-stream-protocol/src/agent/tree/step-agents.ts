// oxlint-disable typescript/no-deprecated -- These agents are deprecated in favour of Workflow, and in use.
import type { BaseAgent, InvocationContext, PluginManager } from '@google/adk'
import { isLoopAgent, isParallelAgent, isSequentialAgent } from '@google/adk'

import { runsAsAdk } from './run-methods.ts'

/** Returns the id of the message of a run, or undefined if the bridge did not start the run. */
export type FindMessageId = (context: InvocationContext) => string | undefined

/** How runs of the bridge are recognised, by their plugin managers. */
export const managers = new WeakMap<PluginManager, FindMessageId>()

/** The agents that wait for the calls of their steps in runs of the bridge. */
export const controlled = new WeakSet<BaseAgent>()

export function findMessageId(context: InvocationContext): string | undefined {
  return managers.get(context.pluginManager)?.(context)
}

/** Whether an agent waits for the calls of its steps in a run. */
export function waitsForSteps(agent: BaseAgent, context: InvocationContext): boolean {
  return controlled.has(agent) && findMessageId(context) !== undefined
}

/** Whether an agent runs its sub-agents as steps, as ADK does. */
export function isStepAgent(agent: BaseAgent): boolean {
  const hasSteps = isSequentialAgent(agent) || isLoopAgent(agent) || isParallelAgent(agent)
  return hasSteps && runsAsAdk(agent)
}

import type { BaseAgent, BaseTool, SingleBeforeToolCallback } from '@google/adk'
import { isLlmAgent } from '@google/adk'

import type { ReplaceError } from '../adk-workarounds/guard-tool.ts'
import { guardTool, replaceErrorsInside } from '../adk-workarounds/guard-tool.ts'
import type { ToolCall } from '../tool-call.ts'
import { findAgentOf } from './agent-tool.ts'

const guarded = new WeakSet<BaseAgent>()

/**
 * Replaces the errors of tools inside an agent that is used as a tool. ADK runs such an agent with a separate runner
 * without plugins, and would pass the error message to its model. Only a callback of the agent can intercept that
 * run.
 */
export function guardNested({ tool, toolContext }: ToolCall, replace: ReplaceError): void {
  if (guardAgentOf(tool)) replaceErrorsInside(toolContext, replace)
}

/** Guards the agent of an `AgentTool`. Returns false for any other tool. */
function guardAgentOf(tool: BaseTool): boolean {
  const agent = findAgentOf(tool)
  if (agent) guardAgent(agent)
  return agent !== undefined
}

function guardAgent(agent: BaseAgent): void {
  if (guarded.has(agent)) return
  guarded.add(agent)
  if (isLlmAgent(agent)) {
    const callbacks = agent.canonicalBeforeToolCallbacks
    agent.beforeToolCallback = [guardNestedTool, ...callbacks]
  }
  for (const subAgent of agent.subAgents) guardAgent(subAgent)
}

// The tools of a toolset are known only when they are called.
const guardNestedTool: SingleBeforeToolCallback = ({ tool }) => {
  guardTool(tool)
  guardAgentOf(tool)
  return undefined
}

import type { BaseAgent, BaseTool } from '@google/adk'
import {
  AgentTool,
  isBaseAgent,
  isBaseTool,
  isFunctionTool,
  isLlmAgent,
  isSequentialAgent,
} from '@google/adk'

import { agentsOf } from './agent-tools.ts'

/**
 * Refuses agents that ADK 2.0.0 cannot pause (AP12). An approval within an AgentTool is swallowed, and a SequentialAgent goes on to
 * its next agent without waiting for one.
 */
export function checkAgent(root: unknown): void {
  if (!isBaseAgent(root)) return
  for (const agent of agentsOf(root)) {
    for (const nested of nestedAgents(agent)) refuseGated(nested, IN_AGENT_TOOL)
    if (isSequentialAgent(agent))
      for (const step of agent.subAgents.slice(0, -1)) refuseGated(step, IN_SEQUENCE)
  }
}

function nestedAgents(agent: BaseAgent): BaseAgent[] {
  return toolsOf(agent).flatMap((tool) => (tool instanceof AgentTool ? readAgent(tool) : []))
}

function refuseGated(root: BaseAgent, say: (agent: string, tool: string) => string): void {
  for (const agent of agentsOf(root)) {
    const gated = toolsOf(agent).find(
      (tool) => isFunctionTool(tool) && Reflect.get(tool, 'requireConfirmation') !== false,
    )
    if (gated) throw new TypeError(say(root.name, gated.name))
  }
}

function toolsOf(agent: BaseAgent): BaseTool[] {
  return isLlmAgent(agent) ? agent.tools.filter((tool) => isBaseTool(tool)) : []
}

// ADK keeps the agent of an AgentTool to itself.
function readAgent(tool: AgentTool): BaseAgent[] {
  const agent: unknown = Reflect.get(tool, 'agent')
  return isBaseAgent(agent) ? [agent] : []
}

function IN_AGENT_TOOL(agent: string, tool: string): string {
  return `createBridge: the tool ${tool} needs approval, but its agent ${agent} is used as an AgentTool, where nobody can be asked. Make ${agent} a sub-agent and let the parent transfer to it.`
}

function IN_SEQUENCE(agent: string, tool: string): string {
  return `createBridge: the tool ${tool} of ${agent} needs approval, but ADK runs the next agent of a SequentialAgent without waiting for it. Put ${agent} last, or let an LlmAgent transfer between the steps.`
}

import type { BaseAgent, BaseTool } from '@google/adk'
import {
  AgentTool,
  isBaseAgent,
  isBaseTool,
  isFunctionTool,
  isLlmAgent,
  isSequentialAgent,
} from '@google/adk'

import type { ApprovalPolicy } from '../approvals/policy.ts'
import { agentsOf } from './agent-tools.ts'

/**
 * Refuses agents that ADK 2.0.0 cannot pause (AP12). An AgentTool runs its agent where no plugin is asked and nobody can be: what
 * needs approval would run without it. A SequentialAgent goes on to its next agent without waiting for an approval.
 */
export function checkAgent(root: unknown, policy: ApprovalPolicy = {}): void {
  if (!isBaseAgent(root)) return
  for (const agent of agentsOf(root)) {
    for (const nested of nestedAgents(agent)) refuseNested(nested, policy)
    if (isSequentialAgent(agent))
      for (const step of agent.subAgents.slice(0, -1)) refuseGated(step, policy, IN_SEQUENCE)
  }
}

function nestedAgents(agent: BaseAgent): BaseAgent[] {
  return toolsOf(agent).flatMap((tool) => (tool instanceof AgentTool ? readAgent(tool) : []))
}

function refuseNested(root: BaseAgent, policy: ApprovalPolicy): void {
  refuseGated(root, policy, IN_AGENT_TOOL)
  for (const agent of agentsOf(root)) {
    for (const nested of nestedAgents(agent)) refuseNested(nested, policy)
    // What a function would say of a call, and what a toolset holds, is not known before it is too late to ask.
    const tools = isLlmAgent(agent) ? agent.tools : []
    const isUnknown =
      typeof policy === 'function'
        ? tools.length > 0
        : Object.keys(policy).length > 0 && tools.some((tool) => !isBaseTool(tool))
    if (isUnknown) throw new TypeError(UNKNOWN_IN_AGENT_TOOL(root.name))
  }
}

function refuseGated(
  root: BaseAgent,
  policy: ApprovalPolicy,
  say: (agent: string, tool: string) => string,
): void {
  for (const agent of agentsOf(root)) {
    const gated = toolsOf(agent).find((tool) => isGated(tool, policy))
    if (gated) throw new TypeError(say(root.name, gated.name))
  }
}

/** Whether a tool may need approval: by the policy, which has the last word, or by what it was declared with. */
function isGated(tool: BaseTool, policy: ApprovalPolicy): boolean {
  const named =
    typeof policy !== 'function' && Object.hasOwn(policy, tool.name) ? policy[tool.name] : undefined
  if (named === undefined)
    return isFunctionTool(tool) && Reflect.get(tool, 'requireConfirmation') !== false
  return typeof named === 'object' ? named.required !== false : named !== false
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

function UNKNOWN_IN_AGENT_TOOL(agent: string): string {
  return `createBridge: the agent ${agent} is used as an AgentTool, where ADK asks nobody, and \`approvals\` may speak of its tools. Make ${agent} a sub-agent and let the parent transfer to it, or name the tools that need approval in \`approvals\` one by one.`
}

function IN_SEQUENCE(agent: string, tool: string): string {
  return `createBridge: the tool ${tool} of ${agent} needs approval, but ADK runs the next agent of a SequentialAgent without waiting for it. Put ${agent} last, or let an LlmAgent transfer between the steps.`
}

import type { BaseAgent } from '@google/adk'
import { isLlmAgent, isLoopAgent, isSequentialAgent, NodeTool } from '@google/adk'

import type { ToolCall } from '../tool-call.ts'

/** The reason why ADK 2.0.0 cannot wait for an approval somewhere in an agent. */
export type ApprovalBlocker =
  | { readonly kind: 'loop'; readonly loop: string }
  | { readonly kind: 'sequence'; readonly step: string }
  | { readonly kind: 'workflow'; readonly node: string }
  | { readonly kind: 'node-tool'; readonly tool: string }

/** Returns the reason why a parent cannot wait for an approval in one of its sub-agents. Returns undefined if it can. */
export function findApprovalBlocker(
  parent: BaseAgent,
  subAgent: BaseAgent,
): ApprovalBlocker | undefined {
  if (isLoopAgent(parent)) return { kind: 'loop', loop: parent.name }
  if (!isSequentialAgent(parent) || parent.subAgents.at(-1) === subAgent) return undefined
  return { kind: 'sequence', step: subAgent.name }
}

/**
 * Whether ADK can wait for the approval of a call. `createBridge` rejects agents that cannot. This check covers tools
 * that are unknown at that time, such as those of a toolset.
 */
export function canWait(
  { tool, toolContext }: ToolCall,
  isRoot: (agent: BaseAgent) => boolean,
): boolean {
  const { agent: caller, nodeToolDepth } = toolContext.invocationContext
  if (tool instanceof NodeTool || nodeToolDepth > 0 || !isLlmAgent(caller)) return false
  let agent: BaseAgent = caller
  // The root of a nested runner may also be a sub-agent elsewhere.
  for (let { parentAgent } = agent; parentAgent && !isRoot(agent); { parentAgent } = agent) {
    if (findApprovalBlocker(parentAgent, agent)) return false
    agent = parentAgent
  }
  // An agent that is a node of a workflow has no parent and is not the root.
  return isRoot(agent)
}

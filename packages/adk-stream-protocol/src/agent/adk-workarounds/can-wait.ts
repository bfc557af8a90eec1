import type { BaseAgent } from '@google/adk'
import { isLlmAgent, isLoopAgent, isSequentialAgent, NodeTool } from '@google/adk'

import type { ToolCall } from '../tool-call.ts'

/** Why ADK 2.0.0 does not wait for an approval somewhere in an agent. */
export type ApprovalBlocker =
  | { readonly kind: 'agent-tool'; readonly agent: string }
  | { readonly kind: 'loop'; readonly loop: string }
  | { readonly kind: 'sequence'; readonly step: string }
  | { readonly kind: 'workflow'; readonly node: string }
  | { readonly kind: 'node-tool'; readonly tool: string }

/** What keeps a parent from waiting for an approval in one of its sub-agents. */
export function findApprovalBlocker(
  parent: BaseAgent,
  subAgent: BaseAgent,
): ApprovalBlocker | undefined {
  if (isLoopAgent(parent)) return { kind: 'loop', loop: parent.name }
  if (!isSequentialAgent(parent) || parent.subAgents.at(-1) === subAgent) return undefined
  return { kind: 'sequence', step: subAgent.name }
}

/**
 * Whether ADK can wait for an approval of a call. Agents that cannot are refused when the bridge is made; this is for tools that were
 * not known then, such as those of a toolset.
 */
export function canWait(
  { tool, toolContext }: ToolCall,
  isRoot: (agent: BaseAgent) => boolean,
): boolean {
  const { agent: caller, nodeToolDepth } = toolContext.invocationContext
  if (tool instanceof NodeTool || nodeToolDepth > 0 || !isLlmAgent(caller)) return false
  let agent: BaseAgent = caller
  for (let { parentAgent } = agent; parentAgent; { parentAgent } = agent) {
    if (findApprovalBlocker(parentAgent, agent)) return false
    agent = parentAgent
  }
  // An agent that is a node of a workflow has no parent and is not the root.
  return isRoot(agent)
}

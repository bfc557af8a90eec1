import type { BaseAgent, BaseNode } from '@google/adk'
import {
  isLlmAgent,
  isLoopAgent,
  isSequentialAgent,
  isWorkflow,
  NodeTool,
  RemoteA2AAgent,
} from '@google/adk'

import type { ToolCall } from '../tool-call.ts'
import { isNodeCall } from './workflow-run.ts'
import { runsAsAdk } from './run-methods.ts'
import { isStepAgent, waitsForSteps } from './run-steps.ts'
import { canNodeWait } from './workflow-nodes.ts'

/** The reason why an agent cannot wait for an approval. */
export type ApprovalBlocker =
  | { readonly kind: 'overridden-run'; readonly agent: string }
  | { readonly kind: 'live-steps'; readonly agent: string; readonly step: string }
  | { readonly kind: 'nested-steps'; readonly agent: string; readonly step: string }
  | { readonly kind: 'same-name'; readonly agent: string }
  | { readonly kind: 'workflow'; readonly node: string }
  | { readonly kind: 'node-sub-agent'; readonly node: string; readonly agent: string }
  | { readonly kind: 'node-tool'; readonly tool: string }

/** Returns the reason why an agent or a node cannot wait for an approval at all: its class overrides ADK's run methods. */
export function findOverriddenRun(part: BaseNode): ApprovalBlocker | undefined {
  return runsAsAdk(part) ? undefined : { kind: 'overridden-run', agent: part.name }
}

/**
 * Returns the reason why a parent cannot wait for an approval in one of its sub-agents. Returns undefined if it can. `isLive` says
 * that the agents also run in live sessions, and `isNested` that they run inside an `AgentTool`. ADK does not wait there.
 */
export function findApprovalBlocker(
  parent: BaseAgent,
  subAgent: BaseAgent,
  { isLive, isNested }: { readonly isLive: boolean; readonly isNested: boolean },
): ApprovalBlocker | undefined {
  if (!isStepAgent(parent)) return findOverriddenRun(parent)
  const step = { agent: parent.name, step: subAgent.name }
  const ambiguous = [parent, subAgent].find(isAmbiguous)
  if (ambiguous) return { kind: 'same-name', agent: ambiguous.name }
  if (isNested && hasLaterStep(parent, subAgent)) return { kind: 'nested-steps', ...step }
  return isLive && hasLaterStep(parent, subAgent) ? { kind: 'live-steps', ...step } : undefined
}

/** Whether another agent is found by the name of this one. A turn continues at the agents that its events name. */
function isAmbiguous(agent: BaseAgent): boolean {
  return agent.rootAgent.findAgent(agent.name) !== agent
}

/** Whether ADK starts another step after a step of an agent. */
function hasLaterStep(parent: BaseAgent, subAgent: BaseAgent): boolean {
  return isLoopAgent(parent) || (isSequentialAgent(parent) && parent.subAgents.at(-1) !== subAgent)
}

/**
 * Whether ADK can wait for the approval of a call. `createBridge` rejects agents that cannot. This check covers tools
 * that are unknown at that time, such as those of a toolset.
 */
export function canWaitIn(root: unknown, call: ToolCall): boolean {
  if (isNodeCall(call.toolContext)) return true
  const { agent: caller } = call.toolContext.invocationContext
  if (isWorkflow(root) && !canNodeWait(caller, root)) return false
  return canWait(call, (agent) => agent === (isWorkflow(root) ? caller : root))
}

/** Whether ADK can wait for the approval of a call in an agent, below an agent that `isRoot` accepts. */
export function canWait(
  { tool, toolContext }: ToolCall,
  isRoot: (agent: BaseAgent) => boolean,
): boolean {
  const { agent: caller, nodeToolDepth } = toolContext.invocationContext
  if (tool instanceof NodeTool || nodeToolDepth > 0) return false
  if (!isLlmAgent(caller) && !(caller instanceof RemoteA2AAgent)) return false
  if (!runsAsAdk(caller)) return false
  let agent: BaseAgent = caller
  // The root of a nested runner may also be a sub-agent elsewhere.
  for (let { parentAgent } = agent; parentAgent && !isRoot(agent); { parentAgent } = agent) {
    const waits = waitsForSteps(parentAgent, toolContext.invocationContext)
    if (!runsAsAdk(parentAgent) || (hasLaterStep(parentAgent, agent) && !waits)) return false
    if (waits && [parentAgent, agent].some(isAmbiguous)) return false
    agent = parentAgent
  }
  // An agent that is a node of a workflow has no parent and is not the root.
  return isRoot(agent)
}

import type { BaseAgent, BaseNode } from '@google/adk'
import { isLlmAgent, isLoopAgent, isSequentialAgent, NodeTool, RemoteA2AAgent } from '@google/adk'

import type { ToolCall } from '../tool-call.ts'
import { runsAsAdk } from './run-methods.ts'
import { isStepAgent, waitsForSteps } from './step-agents.ts'

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

/** Returns why a tool cannot wait, as the second half of a sentence. */
export function reasonOf(obstacle: ApprovalBlocker): string {
  switch (obstacle.kind) {
    case 'overridden-run':
      return `but the class of ${obstacle.agent} overrides ADK's run methods, so it may continue while a call waits. Give the tool to an agent that is not below ${obstacle.agent}. Or use a class of ADK and do not override \`runAsyncImpl\`, \`runLiveImpl\` or the like: a SequentialAgent, a Workflow, or an LlmAgent that transfers.`
    case 'live-steps':
      return `but in a live session the agent ${obstacle.agent} continues while ${obstacle.step} waits for an approval. Serve ${obstacle.agent} with a bridge without \`live\`, or let an LlmAgent transfer between the steps.`
    case 'nested-steps':
      return `but ${obstacle.agent} runs inside an AgentTool, and continues there while ${obstacle.step} waits for an approval. Make ${obstacle.agent} a sub-agent, or put ${obstacle.step} last.`
    case 'same-name':
      return `but two agents have the name ${obstacle.agent}, and a step is found by its name when it continues. Give each agent its own name.`
    case 'workflow':
      return `but the node ${obstacle.node} of a workflow cannot be resumed after an approval. Give the tool to an LlmAgent that is a node of its own, with a name that no other node has, in the workflow that is the agent of the bridge.`
    case 'node-sub-agent':
      return `but ${obstacle.agent} is below the node ${obstacle.node} of a workflow, where only an LlmAgent with a name of its own can be continued, in a node that is not in the mode \`task\`. Make ${obstacle.agent} a node of its own, or an AgentTool of ${obstacle.node}.`
    case 'node-tool':
      return `but ADK cannot resume ${obstacle.tool}, a node that is used as a tool, after an approval. Give the tool to an LlmAgent directly.`
  }
}

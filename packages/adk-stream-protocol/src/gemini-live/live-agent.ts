import type { BaseAgent, BaseLlm } from '@google/adk'
import { isLlmAgent } from '@google/adk'

/**
 * Returns a copy of the agent for a live run: with the live model, and without tool callbacks. ADK would invoke those when it hands a
 * call over. `runLiveCall` invokes them when the tool runs.
 */
export function toLiveAgent(agent: BaseAgent, model: BaseLlm): BaseAgent {
  const subAgents = agent.subAgents.map((subAgent) => toLiveAgent(subAgent, model))
  const live = isLlmAgent(agent)
    ? agent.clone({ model, subAgents, beforeToolCallback: [], afterToolCallback: [] })
    : agent.clone({ subAgents })
  // An agent such as RoutedAgent creates its sub-agents itself. Their tools would run without approval.
  if (live.subAgents.some((subAgent, index) => subAgent !== subAgents[index]))
    throw new TypeError(
      `createBridge: the agent ${agent.name} cannot talk live, because it makes its sub-agents itself. Leave out \`live\`, or let an LlmAgent transfer to them.`,
    )
  return live
}

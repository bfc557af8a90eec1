import type { BaseAgent, BaseLlm } from '@google/adk'
import { isLlmAgent } from '@google/adk'

/**
 * The agent as a live run needs it: with the live model, and without callbacks around tools. ADK would call those when it hands a
 * call over; they are called when the tool really runs.
 */
export function toLiveAgent(agent: BaseAgent, model: BaseLlm): BaseAgent {
  const subAgents = agent.subAgents.map((subAgent) => toLiveAgent(subAgent, model))
  const live = isLlmAgent(agent)
    ? agent.clone({ model, subAgents, beforeToolCallback: [], afterToolCallback: [] })
    : agent.clone({ subAgents })
  // An agent that keeps others in its own way, as RoutedAgent does, makes them anew: they would talk past the gate.
  if (live.subAgents.some((subAgent, index) => subAgent !== subAgents[index]))
    throw new TypeError(
      `createBridge: the agent ${agent.name} cannot talk live, because it makes its sub-agents itself. Leave out \`live\`, or let an LlmAgent transfer to them.`,
    )
  return live
}

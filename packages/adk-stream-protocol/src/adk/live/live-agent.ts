import type { BaseAgent, BaseLlm } from '@google/adk'
import { isLlmAgent } from '@google/adk'

/**
 * The agent as a live run needs it: with the live model, and without callbacks around tools. ADK would call those when it hands a
 * call over; they are called when the tool really runs.
 */
export function toLiveAgent(agent: BaseAgent, model: BaseLlm): BaseAgent {
  const subAgents = agent.subAgents.map((subAgent) => toLiveAgent(subAgent, model))
  return isLlmAgent(agent)
    ? agent.clone({ model, subAgents, beforeToolCallback: [], afterToolCallback: [] })
    : agent.clone({ subAgents })
}

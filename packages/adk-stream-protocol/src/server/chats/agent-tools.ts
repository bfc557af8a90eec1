import type { BaseAgent, BaseTool } from '@google/adk'
import { isBaseAgent, isLlmAgent } from '@google/adk'

/** Finds a tool by its name in an agent and in all agents below it. */
export async function findTool(root: unknown, toolName: string): Promise<BaseTool | undefined> {
  if (!isBaseAgent(root)) return undefined
  for (const agent of agentsOf(root)) {
    const tools = isLlmAgent(agent) ? await agent.canonicalTools() : []
    const found = tools.find((tool) => tool.name === toolName)
    if (found) return found
  }
  return undefined
}

/** An agent and all agents below it. */
function agentsOf(agent: BaseAgent): BaseAgent[] {
  return [agent, ...agent.subAgents.flatMap(agentsOf)]
}

import type { BaseAgent } from '@google/adk'
import { isAgentTool, isBaseAgent } from '@google/adk'

/** Returns the agent of an `AgentTool`. Returns undefined for any other tool. ADK declares the agent private. */
export function findAgentOf(tool: unknown): BaseAgent | undefined {
  const agent: unknown = isAgentTool(tool) ? Reflect.get(tool, 'agent') : undefined
  return isBaseAgent(agent) ? agent : undefined
}

import { isAgentTool, isBaseAgent, isLlmAgent, MCPToolset } from '@google/adk'

import { listOverOneSession } from './listing-session.ts'

/**
 * Keeps MCP sessions open when a run ends that does not use them. After each run, ADK 2.0.0 closes all toolsets of the agent, and with
 * them every MCP session in use: calls of other chats fail, although their server may have run them. Each call closes its own session,
 * and the listings share one. ADK takes the toolset from the agent, so it cannot be wrapped.
 *
 * Returns a function that closes the toolsets.
 */
export function shareToolsets(roots: Iterable<unknown>): () => Promise<void> {
  const shared = [...new Set(Array.from(roots).flatMap((root) => findToolsets(root)))].filter(
    (toolset) => !Object.hasOwn(toolset, 'close'),
  )
  for (const toolset of shared)
    Reflect.defineProperty(toolset, 'close', { value: leaveOpen, configurable: true })
  const closeSessions = shared.map(listOverOneSession)
  return async () => {
    for (const toolset of shared) Reflect.deleteProperty(toolset, 'close')
    await Promise.all(closeSessions.map((close) => close()))
    await Promise.all(shared.map((toolset) => toolset.close()))
  }
}

function findToolsets(agent: unknown, visited = new Set<unknown>()): MCPToolset[] {
  if (!isBaseAgent(agent) || visited.has(agent)) return []
  visited.add(agent)
  const tools = isLlmAgent(agent) ? agent.tools : []
  return [
    ...tools.flatMap((tool) => (tool instanceof MCPToolset ? [tool] : [])),
    // ADK declares the agent private. Its runner closes its toolsets too.
    ...tools
      .filter(isAgentTool)
      .flatMap((tool) => findToolsets(Reflect.get(tool, 'agent'), visited)),
    ...agent.subAgents.flatMap((subAgent) => findToolsets(subAgent, visited)),
  ]
}

function leaveOpen(): Promise<void> {
  return Promise.resolve()
}

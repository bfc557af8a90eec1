import type { BaseAgent, BaseTool, BaseToolset } from '@google/adk'
import { isBaseAgent, isBaseTool, isBaseToolset, isLlmAgent, isWorkflow } from '@google/adk'

import { findAgentOf } from './agent-tool.ts'
import { listNodeAgents, listNodeTools } from './workflow-nodes.ts'

/** Returns an agent or the nodes of a workflow, their sub-agents, and the agents that they use as tools. */
export function listAgents(root: unknown): ReadonlySet<BaseAgent> {
  // Agents may use each other. The set grows while it is read.
  const agents = new Set(agentsOf(root))
  for (const agent of agents)
    for (const tool of isLlmAgent(agent) ? agent.tools : [])
      for (const each of agentsOf(findAgentOf(tool))) agents.add(each)
  return agents
}

/** Returns the tools and toolsets in the same places. Does not read toolsets, which may be remote. */
export function listTools(root: unknown): (BaseTool | BaseToolset)[] {
  const listed = [...listAgents(root)].flatMap((agent) => (isLlmAgent(agent) ? agent.tools : []))
  return [
    ...listNodeTools(root),
    ...listed.filter((tool) => isBaseTool(tool) || isBaseToolset(tool)),
  ]
}

/** Returns an agent and all its sub-agents, or the agents that are nodes of a workflow. */
function agentsOf(root: unknown): BaseAgent[] {
  if (isWorkflow(root)) return listNodeAgents(root).flatMap(agentsOf)
  return isBaseAgent(root) ? [root, ...root.subAgents.flatMap(agentsOf)] : []
}

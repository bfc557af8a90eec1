import type { BaseAgent, BaseTool, BaseToolset } from '@google/adk'
import { isBaseAgent, isBaseTool, isBaseToolset, isLlmAgent, isWorkflow } from '@google/adk'

import { listNodeAgents, listNodeTools } from '../../agent/adk-workarounds/workflow-nodes.ts'
import { asBrowserTool } from '../../calls/browser-tool.ts'
import { findNestedAgent } from '../../calls/nested-agent.ts'

/** How long a list is used for the tools that it contains, and how long for the absence of others, in ms. */
const MAX_AGE_MS = 60_000
const MIN_AGE_MS = 1_000

interface ToolList {
  readonly readAt: number
  readonly tools: Promise<readonly BaseTool[]>
}

/** The newest lists of toolsets. To list its tools, ADK starts an MCP server or connects to it. */
const lists = new WeakMap<BaseToolset, ToolList>()

/**
 * Finds a tool by name in an agent or the nodes of a workflow, their sub-agents, and the agents that they use as tools. Tools that agents
 * list themselves come first. A tool of a toolset is for reading only: its list may be a minute old.
 */
export async function findTool(root: unknown, toolName: string): Promise<BaseTool | undefined> {
  const node = listNodeTools(root).find(({ name }) => name === toolName)
  if (node) return node
  const toolsets: BaseToolset[] = []
  for (const agent of listAgents(root)) {
    for (const tool of isLlmAgent(agent) ? agent.tools : []) {
      if (isBaseToolset(tool)) toolsets.push(tool)
      if (isBaseTool(tool) && tool.name === toolName) return tool
    }
  }
  for (const toolset of toolsets) {
    const found = await findInToolset(toolset, toolName)
    if (found) return found
  }
  return undefined
}

/** Returns all agents in the same places. */
export function listAgents(root: unknown): ReadonlySet<BaseAgent> {
  // Agents may use each other. The set grows while it is read.
  const agents = new Set(agentsOf(root))
  for (const agent of agents) {
    for (const tool of isLlmAgent(agent) ? agent.tools : []) {
      const inner = findNestedAgent(tool)
      for (const each of inner ? agentsOf(inner) : []) agents.add(each)
    }
  }
  return agents
}

async function findInToolset(
  toolset: BaseToolset,
  toolName: string,
): Promise<BaseTool | undefined> {
  const known = lists.get(toolset)
  const age = known ? performance.now() - known.readAt : Infinity
  const find = (tools: readonly BaseTool[]): BaseTool | undefined =>
    tools.find(({ name }) => name === toolName)
  if (known && age < MAX_AGE_MS) {
    const found = find(await known.tools)
    // The server may have added the tool since.
    if (found || age < MIN_AGE_MS) return found
  }
  return find(await readList(toolset))
}

function readList(toolset: BaseToolset): Promise<readonly BaseTool[]> {
  const tools = toolset.getTools()
  const list = { readAt: performance.now(), tools }
  lists.set(toolset, list)
  tools.catch(() => {
    if (lists.get(toolset) === list) lists.delete(toolset)
  })
  return tools
}

/** Returns the names of the browser tools in the same places. Does not read toolsets, which may be remote. */
export function listBrowserTools(roots: Iterable<unknown>): ReadonlySet<string> {
  const names = new Set<string>()
  for (const root of roots) {
    const listed = [...listAgents(root)].flatMap((agent) => (isLlmAgent(agent) ? agent.tools : []))
    for (const tool of [...listNodeTools(root), ...listed])
      if (isBaseTool(tool) && asBrowserTool(tool)) names.add(tool.name)
  }
  return names
}

/** Returns an agent and all its sub-agents, or the agents that are nodes of a workflow. */
function agentsOf(root: unknown): BaseAgent[] {
  if (isWorkflow(root)) return listNodeAgents(root).flatMap(agentsOf)
  return isBaseAgent(root) ? [root, ...root.subAgents.flatMap(agentsOf)] : []
}

import type { BaseTool, BaseToolset } from '@google/adk'
import { isBaseTool, isBaseToolset } from '@google/adk'

import { listTools } from '../../agent/tree/list-agents.ts'
import { asClientTool } from '../../calls/client-tool.ts'

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
 * Finds a tool by name in an agent and all agents that it consists of or uses. Tools that agents list themselves come first. A tool of a
 * toolset is for reading only: its list may be a minute old.
 */
export async function findTool(root: unknown, toolName: string): Promise<BaseTool | undefined> {
  const listed = listTools(root)
  const own = listed.filter(isBaseTool).find(({ name }) => name === toolName)
  if (own) return own
  for (const toolset of listed.filter(isBaseToolset)) {
    const found = await findInToolset(toolset, toolName)
    if (found) return found
  }
  return undefined
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

/** Returns the names of the tools in the same places that run in a client. Does not read toolsets, which may be remote. */
export function listClientTools(roots: Iterable<unknown>): ReadonlySet<string> {
  const tools = [...roots].flatMap(listTools).filter(isBaseTool)
  return new Set(tools.filter(asClientTool).map(({ name }) => name))
}

import type { BaseToolset } from '@google/adk'
import { MCPToolset } from '@google/adk'

import { asClientTool } from '../../calls/client-tool.ts'
import { explainApproval, type ApprovalNeed } from '../../calls/explain-approval.ts'
import { isRecord } from '../../protocol/guards.ts'
import type { AgentGraph, FoundTool, FoundToolset } from '../../agent/tree/agent-graph.ts'
import { reasonOf } from '../../agent/tree/can-wait.ts'
import { findModel } from '../../agent/tree/find-model.ts'
import { listAgents } from '../../agent/tree/list-agents.ts'
import { checkAgents, findProblems, readAgentGraphs } from '../../server/check-agent.ts'
import type { BridgeSettings } from '../../server/options.ts'

/** A tool of an agent, and whether its calls need approval. */
export interface ToolReport extends ApprovalNeed {
  readonly name: string
  readonly agent: string | undefined
  /** Why a call cannot wait for an approval here. */
  readonly cannotWait: string | undefined
  readonly runsInBrowser: boolean
}

/** A toolset, such as the tools of an MCP server. They are known only when it is connected. */
export interface ToolsetReport {
  readonly agent: string | undefined
  /** The pattern of its tools in a policy: `files_*`. Undefined without a prefix. */
  readonly pattern: string | undefined
  readonly server: string | undefined
  /** The tools, if they were listed. */
  readonly tools: readonly ToolReport[] | undefined
}

/** What `check` prints about an agent. */
export interface AgentReport {
  readonly agents: readonly { readonly name: string; readonly model: string | undefined }[]
  readonly tools: readonly ToolReport[]
  readonly toolsets: readonly ToolsetReport[]
  readonly remoteAgents: readonly string[]
  /** Whether a part, such as a function in a workflow, may run tools that cannot be listed. */
  readonly mayHaveOtherTools: boolean
  /** Why `createBridge` refuses the agent, or why its first turn fails. */
  readonly problems: readonly string[]
}

/** Describes an agent. Connects to its MCP servers only if `connect` is set. */
export async function reportAgent(
  settings: BridgeSettings,
  { connect }: { readonly connect: boolean },
): Promise<AgentReport> {
  const problems: string[] = []
  const roots = [...settings.agents.values()]
  const agents = [...new Set(roots.flatMap((root) => [...listAgents(root)]))].map((agent) => ({
    name: agent.name,
    model: findModel(agent, problems),
  }))
  const found = readGraph(settings, problems)
  const toolsets: ToolsetReport[] = []
  for (const each of found.toolsets)
    toolsets.push(await reportToolset(each, settings, { connect, problems }))
  if (connect && problems.length === 0) await checkListed(settings, problems)
  return {
    agents,
    tools: dedupe(found.tools.map((tool) => reportTool(tool, settings))),
    toolsets,
    remoteAgents: found.remotes,
    mayHaveOtherTools: found.isOpaque,
    problems,
  }
}

/** Reads the tools, and adds the problems that `createBridge` would find. */
function readGraph(settings: BridgeSettings, problems: string[]): AgentGraph {
  try {
    const graph = readAgentGraphs(settings)
    problems.push(...[...findProblems(settings, graph)].map(toSentence))
    return graph
  } catch (error) {
    problems.push(toSentence(describeError(error)))
    return { tools: [], toolsets: [], remotes: [], isOpaque: true }
  }
}

/** Returns the message of an error. */
export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Returns an error of `createBridge` without its name. */
export function toSentence(problem: string): string {
  const text = problem.replace(/^createBridge:? /, '')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

function reportTool(found: FoundTool, { approvals }: BridgeSettings): ToolReport {
  const { name, agent, tool, obstacle } = found
  return {
    name,
    agent,
    ...explainApproval(found, approvals),
    cannotWait: obstacle && reasonOf(obstacle).replace(/^but /, ''),
    runsInBrowser: tool !== undefined && asClientTool(tool) !== undefined,
  }
}

/** An agent may be reached in several ways. */
function dedupe(tools: readonly ToolReport[]): ToolReport[] {
  const byText = new Map(tools.map((tool) => [JSON.stringify(tool), tool]))
  return [...byText.values()]
}

async function reportToolset(
  { toolset, agent, obstacle }: FoundToolset,
  settings: BridgeSettings,
  { connect, problems }: { readonly connect: boolean; readonly problems: string[] },
): Promise<ToolsetReport> {
  const { prefix } = toolset
  const server = describeServer(toolset)
  const report = { agent, pattern: prefix === undefined ? undefined : `${prefix}_*`, server }
  if (!connect) return { ...report, tools: undefined }
  try {
    const listed = await toolset.getTools()
    await toolset.close()
    const tools = listed.map((tool) =>
      reportTool({ name: tool.name, agent, tool, obstacle }, settings),
    )
    return { ...report, tools }
  } catch (error) {
    const [line = ''] = describeError(error).split('\n')
    problems.push(`The tools of ${server ?? 'a toolset'} cannot be listed: ${line}`)
    return { ...report, tools: undefined }
  }
}

/** Adds the problem of a policy that names a tool that no toolset has. */
async function checkListed(settings: BridgeSettings, problems: string[]): Promise<void> {
  try {
    await checkAgents(settings)()
  } catch (error) {
    problems.push(toSentence(describeError(error)))
  }
}

/** Describes an MCP server without what may be a secret: the query of its URL, or the options of its command. */
function describeServer(toolset: BaseToolset): string | undefined {
  if (!(toolset instanceof MCPToolset)) return undefined
  // ADK 2.0.0 keeps both private.
  const manager: unknown = Reflect.get(toolset, 'mcpSessionManager')
  const params = isRecord(manager) ? manager['connectionParams'] : undefined
  if (!isRecord(params)) return 'an MCP server'
  if (typeof params['url'] === 'string' && URL.canParse(params['url'])) {
    const { origin, pathname } = new URL(params['url'])
    return `${origin}${pathname}`
  }
  const started = isRecord(params['serverParams']) ? params['serverParams'] : {}
  const args = Array.isArray(started['args']) ? started['args'].map(String) : []
  const program = args.find((argument) => !argument.startsWith('-'))
  return [String(started['command'] ?? 'an MCP server'), program].filter(Boolean).join(' ')
}

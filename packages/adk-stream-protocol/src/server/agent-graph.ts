import type { BaseAgent, BaseTool } from '@google/adk'
import {
  isAgentTool,
  isBaseAgent,
  isBaseTool,
  isBaseToolset,
  isLlmAgent,
  isLoopAgent,
  isParallelAgent,
  isRoutedAgent,
  isSequentialAgent,
  isWorkflow,
  JoinNode,
  NodeTool,
  ParallelWorker,
  ToolNode,
} from '@google/adk'

import type { ApprovalBlocker } from '../agent/adk-workarounds/can-wait.ts'
import { findApprovalBlocker } from '../agent/adk-workarounds/can-wait.ts'

/** A tool of an agent, wherever it is. */
interface FoundTool {
  readonly name: string
  /** Missing for a node that ADK makes into a tool. */
  readonly tool: BaseTool | undefined
  readonly obstacle: ApprovalBlocker | undefined
}

interface FoundToolset {
  readonly listNames: () => Promise<string[]>
  readonly obstacle: ApprovalBlocker | undefined
}

/** Everything that an agent may call. */
export interface AgentGraph {
  readonly tools: readonly FoundTool[]
  readonly toolsets: readonly FoundToolset[]
  /** Whether some part may run agents or tools that cannot be seen from outside, as a function in a workflow may. */
  readonly isOpaque: boolean
}

/** Finds the tools of an agent at any depth: in sub-agents, workflows, and agents or nodes that are used as tools. */
export function readAgentGraph(root: unknown): AgentGraph {
  const reader = new GraphReader()
  reader.visit(root, undefined)
  return reader
}

class GraphReader implements AgentGraph {
  readonly tools: FoundTool[] = []
  readonly toolsets: FoundToolset[] = []
  isOpaque = false
  /** By what was visited: under which obstacles. Agents and workflows may contain each other. */
  readonly #visited = new Map<unknown, Set<string>>()

  visit(part: unknown, obstacle: ApprovalBlocker | undefined): void {
    if (this.#wasVisited(part, obstacle)) return
    if (isBaseAgent(part)) this.#visitAgent(part, obstacle)
    else if (isBaseTool(part)) this.#visitTool(part, obstacle)
    else if (isWorkflow(part)) {
      // What an entry function runs is known only when it runs.
      if (!part.graph) this.isOpaque = true
      for (const node of part.graph?.nodes ?? [])
        if (node.name !== START) this.visit(node, obstacle ?? { kind: 'workflow', node: node.name })
    } else if (part instanceof ToolNode)
      this.visit(part.tool, obstacle ?? { kind: 'workflow', node: part.name })
    else if (part instanceof ParallelWorker)
      // ADK declares the inner node private.
      this.visit(Reflect.get(part, 'inner'), obstacle ?? { kind: 'workflow', node: part.name })
    else if (!(part instanceof JoinNode)) this.isOpaque = true
  }

  #visitAgent(agent: BaseAgent, obstacle: ApprovalBlocker | undefined): void {
    if (isLlmAgent(agent)) for (const tool of agent.tools) this.#visitToolUnion(tool, obstacle)
    else if (!isKnownAgent(agent)) this.isOpaque = true
    for (const subAgent of agent.subAgents)
      this.visit(subAgent, obstacle ?? findApprovalBlocker(agent, subAgent))
  }

  #visitToolUnion(tool: unknown, obstacle: ApprovalBlocker | undefined): void {
    if (isBaseTool(tool)) this.visit(tool, obstacle)
    else if (isBaseToolset(tool))
      this.toolsets.push({
        listNames: async () => (await tool.getTools()).map(({ name }) => name),
        obstacle,
      })
    else this.#visitNodeTool(undefined, tool, obstacle)
  }

  #visitTool(tool: BaseTool, obstacle: ApprovalBlocker | undefined): void {
    if (tool instanceof NodeTool) {
      // ADK declares the node private.
      this.#visitNodeTool(tool, Reflect.get(tool, 'node'), obstacle)
      return
    }
    this.tools.push({ name: tool.name, tool, obstacle })
    if (!isAgentTool(tool)) return
    // ADK declares the agent private. Its runner asks no plugin, so this obstacle counts before any other.
    const agent: unknown = Reflect.get(tool, 'agent')
    this.visit(agent, { kind: 'agent-tool', agent: tool.name })
  }

  #visitNodeTool(
    tool: NodeTool | undefined,
    node: unknown,
    outer: ApprovalBlocker | undefined,
  ): void {
    const name = tool?.name ?? readName(node)
    const obstacle = outer ?? { kind: 'node-tool', tool: name }
    this.tools.push({ name, tool, obstacle })
    this.visit(node, obstacle)
  }

  #wasVisited(part: unknown, obstacle: ApprovalBlocker | undefined): boolean {
    const key = obstacle?.kind ?? ''
    const seen = this.#visited.get(part) ?? new Set()
    if (seen.has(key)) return true
    this.#visited.set(part, seen.add(key))
    return false
  }
}

const START = '__START__'

function isKnownAgent(agent: BaseAgent): boolean {
  return [isSequentialAgent, isLoopAgent, isParallelAgent, isRoutedAgent].some((is) => is(agent))
}

function readName(node: unknown): string {
  const name: unknown = typeof node === 'object' && node !== null && Reflect.get(node, 'name')
  return typeof name === 'string' ? name : ''
}

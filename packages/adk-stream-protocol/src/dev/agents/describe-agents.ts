import type { BaseTool } from '@google/adk'
import { RemoteA2AAgent, ToolNode, isBaseAgent, isLlmAgent, isWorkflow } from '@google/adk'

import { listOwnNodes, readInner } from '../../agent/tree/workflow-nodes.ts'
import { readArgumentsJsonSchema } from '../../calls/arguments-schema.ts'
import { isObject } from '../../protocol/guards.ts'
import type { AgentGraph } from '../../agent/tree/agent-graph.ts'
import { readAgentGraph } from '../../agent/tree/agent-graph.ts'
import type { RootAgent } from '../../server/chats/chat-agents.ts'
import { explainApproval } from '../../server/check-agent.ts'
import type { BridgeSettings } from '../../server/options.ts'
import { findModel } from './report-agent.ts'

/** An agent, as the page shows it. */
export interface AgentDescription {
  readonly name: string
  readonly description?: string
  readonly tools: readonly ToolDescription[]
  readonly graph: { readonly nodes: readonly GraphNode[]; readonly edges: readonly GraphEdge[] }
}

interface ToolDescription {
  readonly name: string
  readonly description?: string
  /** The JSON Schema of its arguments. */
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly approval: 'always' | 'sometimes' | 'never'
}

interface GraphNode {
  readonly id: string
  readonly name: string
  readonly kind: 'agent' | 'workflow' | 'function' | 'tool' | 'remote'
  readonly description?: string
  readonly model?: string
}

interface GraphEdge {
  readonly from: string
  readonly to: string
  readonly label?: string
}

/** Describes the agents of a bridge. The tools of MCP servers are not included: they are known only when a server is connected. */
export function describeAgents(settings: BridgeSettings): AgentDescription[] {
  return Array.from(settings.agents, ([name, root]) => {
    const found = readAgentGraph(root, 'agent', settings.live !== undefined)
    return {
      name: name === '' ? root.name : name,
      ...textOf(root),
      tools: describeTools(found, settings),
      graph: describeGraph(root, found),
    }
  })
}

function textOf(part: object): { readonly description?: string } {
  const description: unknown = Reflect.get(part, 'description')
  return typeof description === 'string' && description !== '' ? { description } : {}
}

function describeTools({ tools }: AgentGraph, { approvals }: BridgeSettings): ToolDescription[] {
  const byName = new Map<string, ToolDescription>()
  for (const found of tools) {
    const { name, tool } = found
    const parameters = tool && readSchema(tool)
    byName.set(name, {
      name,
      ...(tool && textOf(tool)),
      ...(parameters && { parameters }),
      approval: explainApproval(found, approvals).need,
    })
  }
  return [...byName.values()]
}

function readSchema(tool: BaseTool): Record<string, unknown> | undefined {
  try {
    return readArgumentsJsonSchema(tool)
  } catch {
    // A declaration that the tool cannot make. Its first call reports the error.
    return undefined
  }
}

/** Describes an agent, the agents and nodes below it, and their tools. */
function describeGraph(root: RootAgent, { tools }: AgentGraph): AgentDescription['graph'] {
  const nodes = new Map<unknown, GraphNode>()
  const edges: GraphEdge[] = []
  const add = (part: object, node: Omit<GraphNode, 'id'>): string => {
    const id = `n${nodes.size}`
    nodes.set(part, { id, ...node })
    return id
  }
  const visit = (part: unknown): string | undefined => {
    const known = nodes.get(part)
    if (known || !isObject(part)) return known?.id
    const id = add(part, describeNode(part))
    if (isWorkflow(part)) {
      for (const node of listOwnNodes(part)) connect(id, visit(readInner(node)))
      for (const { fromNode, toNode } of part.graph?.edges ?? []) {
        const from = nodes.get(readInner(fromNode))?.id
        if (from !== undefined) connect(from, visit(readInner(toNode)))
      }
    } else if (isBaseAgent(part)) for (const agent of part.subAgents) connect(id, visit(agent))
    return id
  }
  const connect = (from: string, to: string | undefined): void => {
    if (to !== undefined && from !== to) edges.push({ from, to })
  }
  visit(root)
  for (const { name, agent, tool } of tools) {
    const owner = [...nodes.values()].find(
      (node) => node.name === agent && (node.kind === 'agent' || node.kind === 'remote'),
    )
    if (!owner || !tool || nodes.has(tool)) continue
    connect(owner.id, add(tool, { name, kind: 'tool', ...textOf(tool) }))
  }
  return { nodes: [...nodes.values()], edges }
}

function describeNode(part: Record<string, unknown>): Omit<GraphNode, 'id'> {
  const name = typeof part['name'] === 'string' ? part['name'] : ''
  if (part instanceof RemoteA2AAgent) return { name, kind: 'remote', ...textOf(part) }
  if (isLlmAgent(part)) {
    const model = findModel(part, [])
    return { name, kind: 'agent', ...textOf(part), ...(model !== undefined && { model }) }
  }
  if (isWorkflow(part)) return { name, kind: 'workflow' }
  // Agents that only run others in an order.
  if (isBaseAgent(part)) return { name, kind: part.subAgents.length > 0 ? 'workflow' : 'agent' }
  return { name, kind: part instanceof ToolNode ? 'tool' : 'function' }
}

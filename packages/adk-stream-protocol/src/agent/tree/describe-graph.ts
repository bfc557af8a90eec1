import { RemoteA2AAgent, ToolNode, isBaseAgent, isLlmAgent, isWorkflow } from '@google/adk'

import { isObject } from '../../protocol/guards.ts'
import type { AgentGraph } from './agent-graph.ts'
import { findModel } from './find-model.ts'
import { listOwnNodes, readInner } from './workflow-nodes.ts'

/** An agent, what it consists of, and how they lead to each other. */
export interface GraphDescription {
  readonly nodes: readonly GraphNode[]
  readonly edges: readonly GraphEdge[]
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

/** Describes an agent, the agents and nodes below it, and their tools. */
export function describeGraph(root: object, { tools }: AgentGraph): GraphDescription {
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
    const named = [...nodes.values()].filter((node) => node.name === agent)
    // An agent that is used as a tool is a node of this kind.
    const owner = named.find(({ kind }) => kind === 'agent' || kind === 'remote') ?? named[0]
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

/** Returns the description of an agent or of a tool, if it has one. */
export function textOf(part: object): { readonly description?: string } {
  const description: unknown = Reflect.get(part, 'description')
  return typeof description === 'string' && description !== '' ? { description } : {}
}

import type { Timeline } from 'adk-stream-protocol/client'

import type { AgentInfo } from '../../../studio-info.ts'

type Graph = NonNullable<AgentInfo['graph']>
type GraphNode = Graph['nodes'][number]

/** A node with the nodes below it. */
export interface TreeNode extends GraphNode {
  readonly children: readonly TreeNode[]
  /** The names of other nodes that may follow, such as the next node of a workflow. */
  readonly next: readonly string[]
}

/**
 * Arranges a graph as a tree, for the width of a panel. A node is below the node nearest to the start that leads to it. All other edges
 * are names in `next`, so that the edges of a workflow, which may form cycles, are shown too.
 */
export function arrangeGraph({ nodes, edges }: Graph): readonly TreeNode[] {
  const [first] = nodes
  if (!first) return []
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const parents = new Map<string, string | undefined>()
  const follow = (start: string): void => {
    parents.set(start, undefined)
    const queue = [start]
    for (const id of queue)
      for (const { from, to } of edges)
        if (from === id && !parents.has(to) && byId.has(to)) {
          parents.set(to, id)
          queue.push(to)
        }
  }
  for (const { id } of nodes) if (!parents.has(id)) follow(id)
  const build = (node: GraphNode): TreeNode => {
    const targets = [...new Set(edges.filter(({ from }) => from === node.id).map(({ to }) => to))]
    return {
      ...node,
      children: nodes.filter(({ id }) => parents.get(id) === node.id).map(build),
      next: targets
        .filter((to) => parents.get(to) !== node.id)
        .flatMap((to) => byId.get(to)?.name ?? []),
    }
  }
  return nodes.filter(({ id }) => parents.get(id) === undefined).map(build)
}

export type Activity = 'running' | 'waiting'

/** Returns the names of the agents and tools that run now, or wait for a person. */
export function findActive({ entries }: Timeline): ReadonlyMap<string, Activity> {
  const active = new Map<string, Activity>()
  for (const entry of entries) {
    if (entry.endedAt !== undefined) continue
    if (entry.type === 'model' && entry.agent !== undefined) active.set(entry.agent, 'running')
    if (entry.type === 'tool' && entry.state === 'running') active.set(entry.toolName, 'running')
    if (entry.type === 'approval' && entry.state === 'requested')
      active.set(entry.toolName, 'waiting')
  }
  return active
}

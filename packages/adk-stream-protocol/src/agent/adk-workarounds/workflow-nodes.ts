import type { LlmAgent, Workflow } from '@google/adk'
import { DEFAULT_ROUTE, isLlmAgent, isWorkflow, ParallelWorker } from '@google/adk'

import type { StepEdge } from '../../protocol/message.ts'

type Node = NonNullable<Workflow['graph']>['nodes'][number]

const START = '__START__'
const MAX_EDGES = 64
const MAX_ROUTE_LENGTH = 40

/** Returns the nodes of a workflow without those of nested workflows. The nodes of an entry function are known only when it runs. */
export function listOwnNodes({ graph }: Workflow): Node[] {
  return (graph?.nodes ?? []).filter(({ name }) => name !== START)
}

/** Returns the edges of a workflow without those from its start, or undefined if there are too many to send. */
export function listOwnEdges({ graph }: Workflow): StepEdge[] | undefined {
  const edges = (graph?.edges ?? []).filter(({ fromNode }) => fromNode.name !== START)
  if (edges.length > MAX_EDGES) return undefined
  return edges.map(({ fromNode, toNode, route }) => {
    const routes = [route].flat().filter((each) => each !== null && each !== DEFAULT_ROUTE)
    const text = routes.join(', ').slice(0, MAX_ROUTE_LENGTH)
    return { from: fromNode.name, to: toNode.name, ...(text !== '' && { route: text }) }
  })
}

/** Returns the nodes of a workflow at any depth. The node that a `ParallelWorker` runs for each item takes its place. */
export function listNodes(workflow: Workflow): unknown[] {
  return listOwnNodes(workflow).flatMap((node) =>
    isWorkflow(node) ? [node, ...listNodes(node)] : [readInner(node)],
  )
}

/** Returns the node that a `ParallelWorker` runs for each item, or the node itself. */
export function readInner(node: unknown): unknown {
  // ADK declares the inner node private.
  return node instanceof ParallelWorker ? Reflect.get(node, 'inner') : node
}

/** Returns the nodes that are agents. */
export function listNodeAgents(workflow: Workflow): LlmAgent[] {
  return listNodes(workflow).filter((node) => isLlmAgent(node))
}

/** Whether a node of a workflow can wait for the approval of a call. ADK finds the agent of a confirmation by its name. */
export function canNodeWait(node: unknown, root: unknown): boolean {
  if (!isWorkflow(root) || !isLlmAgent(node)) return false
  const named = listNodes(root).filter((it) => nameOf(it) === node.name)
  return named.length === 1 && named[0] === node
}

function nameOf(node: unknown): unknown {
  return typeof node === 'object' && node !== null && Reflect.get(node, 'name')
}

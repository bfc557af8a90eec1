import type { BaseTool, LlmAgent, Workflow } from '@google/adk'
import {
  DEFAULT_ROUTE,
  isLlmAgent,
  isWorkflow,
  JoinNode,
  ParallelWorker,
  ToolNode,
} from '@google/adk'

import type { StepEdge } from '../../protocol/message.ts'
import type { NodeNote } from '../history/event-notes.ts'
import { NODE_INTERRUPTED } from '../translate/model-outcome.ts'

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
function listNodes(workflow: Workflow): unknown[] {
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

/** Returns an agent and the agents to which it can transfer. */
export function listTransferAgents(agent: LlmAgent): LlmAgent[] {
  const below = agent.subAgents.filter((subAgent) => isLlmAgent(subAgent))
  return [agent, ...below.flatMap(listTransferAgents)]
}

/** Returns the tools that are nodes. ADK also runs a tool alone, as a workflow with one node. */
export function listNodeTools(root: unknown): BaseTool[] {
  const nodes = isWorkflow(root) ? listNodes(root) : [root]
  return nodes.flatMap((node) => (node instanceof ToolNode ? node.tool : []))
}

/**
 * Whether an agent that is a node of a workflow, or to which such a node transfers, can wait for the approval of a call. ADK finds the
 * agent of a confirmation by its name. An agent in the mode `task` does not end when another agent has replied for it.
 */
export function canNodeWait(agent: unknown, root: unknown): boolean {
  if (!isWorkflow(root) || !isLlmAgent(agent)) return false
  const agents = listNodes(root).flatMap((node) => {
    if (!isLlmAgent(node)) return node
    return node.mode === 'task' ? [node] : listTransferAgents(node)
  })
  const named = agents.filter((it) => nameOf(it) === agent.name)
  return named.length === 1 && named[0] === agent
}

function nameOf(node: unknown): unknown {
  return typeof node === 'object' && node !== null && Reflect.get(node, 'name')
}

/** Whether a node runs a function of the application, which may have effects. Agents and tools store their calls. */
export function runsCode(node: unknown): boolean {
  if (isWorkflow(node)) return node.graph === undefined
  return (
    !isLlmAgent(node) && ![JoinNode, ParallelWorker, ToolNode].some((Own) => node instanceof Own)
  )
}

/**
 * Throws if a node ran when its server stopped, unless it declares with `retryConfig` that it may run again. A node has not gone on if
 * a node that it runs has asked since it started. `notes` are those of the turn, in the order in which they were stored.
 */
export function refuseInterrupted(node: Node, path: string, notes: readonly NodeNote[]): void {
  const last = notes.findLastIndex((note) => note.path === path)
  if (node.retryConfig || notes[last]?.state !== 'started') return
  const later = notes.slice(last + 1)
  if (later.some((note) => note.state === 'waiting' && note.path.startsWith(`${path}.`))) return
  throw new InterruptedNodeError(node.name)
}

/** ADK stores the code and the message of an error in the session. */
export class InterruptedNodeError extends Error {
  readonly code = NODE_INTERRUPTED

  constructor(nodeName: string) {
    super(
      `The server stopped while the step ${nodeName} ran. It may or may not have taken effect. The steps after it did not run.`,
    )
  }
}

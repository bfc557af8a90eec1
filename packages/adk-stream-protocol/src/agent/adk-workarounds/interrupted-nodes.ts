import {
  isLlmAgent,
  isWorkflow,
  JoinNode,
  type NodeContext,
  ParallelWorker,
  ToolNode,
} from '@google/adk'

import type { NodeNote } from '../history/event-notes.ts'
import { NODE_INTERRUPTED } from '../translate/model-outcome.ts'

type Node = Parameters<NonNullable<NodeContext['scheduler']>['schedule']>[1]

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

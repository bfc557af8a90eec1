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
 * Throws if a node ran when its server stopped, unless it declares with `retryConfig` that it may run again. A node that waits for a
 * node that it has run has not gone on.
 */
export function refuseInterrupted(node: Node, path: string, runs: readonly NodeNote[]): void {
  if (node.retryConfig || runs.findLast((run) => run.path === path)?.state !== 'started') return
  const isWaiting = runs.some((run) => run.state === 'waiting' && run.path.startsWith(`${path}.`))
  if (!isWaiting) throw new InterruptedNodeError(node.name)
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

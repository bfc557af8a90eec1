import type { LlmAgent, Workflow } from '@google/adk'
import { isLlmAgent, isWorkflow } from '@google/adk'

type Node = NonNullable<Workflow['graph']>['nodes'][number]

const START = '__START__'

/** Returns the nodes of a workflow without those of nested workflows. The nodes of an entry function are known only when it runs. */
export function listOwnNodes({ graph }: Workflow): Node[] {
  return (graph?.nodes ?? []).filter(({ name }) => name !== START)
}

/** Returns the nodes of a workflow at any depth. */
export function listNodes(workflow: Workflow): Node[] {
  return listOwnNodes(workflow).flatMap((node) =>
    isWorkflow(node) ? [node, ...listNodes(node)] : [node],
  )
}

/** Returns the nodes that are agents. */
export function listNodeAgents(workflow: Workflow): LlmAgent[] {
  return listNodes(workflow).filter((node) => isLlmAgent(node))
}

/**
 * Whether a node of a workflow can wait for the approval of a call. ADK finds the agent of a confirmation by its name, and in the task
 * mode an agent also ends when it has called a tool.
 */
export function canNodeWait(node: unknown, root: unknown): boolean {
  if (!isWorkflow(root) || !isLlmAgent(node) || node.mode === 'task') return false
  return listNodes(root).filter(({ name }) => name === node.name).length === 1
}

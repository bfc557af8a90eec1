import { isRecord } from '../../protocol/guards.ts'
import type { StepProgress, StepState } from '../../protocol/message.ts'

const STATES: ReadonlySet<unknown> = new Set<StepState>(['pending', 'running', 'waiting', 'done'])

/** Returns the data of a `data-steps` part. Another server may use the name for something else. */
export function readSteps(data: unknown): StepProgress | undefined {
  if (!isSteps(data)) return undefined
  if (data.edges === undefined || isEdges(data.edges)) return data
  const { edges: _unknown, ...progress } = data
  return progress
}

function isEdges(edges: unknown): boolean {
  return (
    Array.isArray(edges) &&
    edges.every(
      (edge: unknown) =>
        isRecord(edge) &&
        typeof edge['from'] === 'string' &&
        typeof edge['to'] === 'string' &&
        (edge['route'] === undefined || typeof edge['route'] === 'string'),
    )
  )
}

function isSteps(data: unknown): data is StepProgress {
  return (
    isRecord(data) &&
    typeof data['agent'] === 'string' &&
    Array.isArray(data['steps']) &&
    data['steps'].every(
      (step: unknown) =>
        isRecord(step) && typeof step['name'] === 'string' && STATES.has(step['state']),
    )
  )
}

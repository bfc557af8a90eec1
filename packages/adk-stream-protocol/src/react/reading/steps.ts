import { isRecord } from '../../protocol/guards.ts'
import type { StepProgress, StepState } from '../../protocol/message.ts'

const STATES: ReadonlySet<unknown> = new Set<StepState>(['pending', 'running', 'waiting', 'done'])

/** Returns the data of a `data-steps` part. Another server may use the name for something else. */
export function readSteps(data: unknown): StepProgress | undefined {
  return isSteps(data) ? data : undefined
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

import { AdkError } from '../adk-error.ts'

/** Refusals after which an approval is no longer open. */
const OVER = new Set<string>([
  'approval-decided',
  'approval-expired',
  'approval-cancelled',
  'unknown-approval',
])

/** Refusals that say nothing of what was sent: the same may be taken a moment later. */
const PASSING = new Set<string>([
  'unavailable',
  'internal',
  'too-fast',
  'too-many-turns',
  'turn-running',
])

/** Whether an approval is no longer open. */
export function isOver(error: unknown): boolean {
  return error instanceof AdkError && OVER.has(error.code)
}

/** Whether the same may be taken a moment later. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof AdkError) || PASSING.has(error.code)
}

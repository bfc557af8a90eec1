import { PENDING_INSIDE } from '../agent/call-responses.ts'
import type { Approval } from '../approvals/approval.ts'

/** The results of approved calls that wait for a follow-up, with its question. */
const waiting = new WeakMap<object, Approval>()

/** Returns the result of an approved call until its question has ended. */
export function toFollowUpResult(question: Approval): Record<string, unknown> {
  const result = { ...PENDING_INSIDE }
  waiting.set(result, question)
  return result
}

/** Returns the question that an approved call waits for, if this is its result. */
export function readFollowUp(result: unknown): Approval | undefined {
  return typeof result === 'object' && result !== null ? waiting.get(result) : undefined
}

import type { Approval } from './approval.ts'
import { nextApproval, type Transition } from './next-approval.ts'
import { isRefusal } from './refusal.ts'

/**
 * Returns the transition that cancels an approval at a time of the store's clock, for `ApprovalStore.deleteChat`. Returns
 * undefined if the call runs or has ended.
 */
export function cancelApproval(
  approval: Approval,
  reason: string,
  now: number,
): Transition | undefined {
  const result = nextApproval(approval, { type: 'cancel', reason }, now)
  return isRefusal(result) ? undefined : result
}

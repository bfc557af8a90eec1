import type { Approval } from '../../approvals/approval.ts'
import type { ApprovalPolicy } from '../../approvals/policy.ts'
import { resolvePolicy } from '../../approvals/policy.ts'

/** Returns the approval with the hint that the policy gives now. */
export type RefreshHint = (approval: Approval) => Promise<Approval>

/**
 * Asks the policy for its hint again when a pending approval is read. A hint often says what was true when the call was made ("Your
 * wallet holds $1,000"), and a person decides later. Everything else stays as it was asked.
 */
export function refreshHints(
  policy: ApprovalPolicy,
  onError: (error: unknown) => void,
): RefreshHint {
  return async (approval) => {
    if (approval.state.name !== 'requested') return approval
    const { chat, toolName, args, terms } = approval
    const current = await resolvePolicy(
      policy,
      { chat, toolName, args },
      // A tool that asked by itself keeps its own hint.
      { required: () => false, onError },
    )
    const hint = current?.hint ?? terms.hint
    return hint === terms.hint
      ? approval
      : { ...approval, terms: { ...terms, ...(hint !== undefined && { hint }) } }
  }
}

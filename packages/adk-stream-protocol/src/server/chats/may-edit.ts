import type { Approval } from '../../approvals/approval.ts'
import type { Decider } from '../../approvals/next-approval.ts'
import { isDecidedAloneBy } from '../../approvals/next-approval.ts'
import type { ApprovalPolicy } from '../../approvals/policy.ts'
import { resolvePolicy } from '../../approvals/policy.ts'

/** Changed arguments for a call that waits, and who wants them. */
export interface Edit {
  readonly args: Readonly<Record<string, unknown>>
  readonly by: Decider
}

export type MayEdit = (approval: Approval, edit: Edit) => Promise<boolean>

/**
 * Asks the policy about the call as it would be changed. Its terms were made for the arguments of the model: whoever may decide a
 * small payment alone could make a large one of it. What the policy cannot judge stays as it is.
 */
export function editsWithin(policy: ApprovalPolicy, onError: (error: unknown) => void): MayEdit {
  return async ({ chat, toolName }, { args, by }) => {
    let judged = true
    const terms = await resolvePolicy(
      policy,
      { chat, toolName, args },
      {
        // Where no policy speaks, the tool asks the chat's principal, whatever the arguments: the terms that were shown stand.
        required: () => false,
        onError: (error) => {
          judged = false
          onError(error)
        },
      },
    )
    return judged && (terms === undefined || isDecidedAloneBy(terms, by))
  }
}

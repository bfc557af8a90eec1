import type { BaseTool } from '@google/adk'

import type { Approval } from '../../approvals/approval.ts'
import type { Decider } from '../../approvals/next-approval.ts'
import { isDecidedAloneBy } from '../../approvals/next-approval.ts'
import type { ApprovalPolicy } from '../../approvals/policy.ts'
import { resolvePolicy } from '../../approvals/policy.ts'
import { readArgumentsSchema } from '../../calls/arguments-schema.ts'
import { ProtocolError } from '../../protocol/errors.ts'

/** Throws if edited arguments do not fit the schema of the tool (AP5). */
export function checkEdit(
  tool: BaseTool | undefined,
  args: Readonly<Record<string, unknown>>,
): void {
  const schema = tool && readArgumentsSchema(tool)
  if (!schema)
    throw badEdit(
      'The arguments of this call cannot be changed: the tool has no schema by which they can be checked.',
    )
  const parsed = schema.safeParse(args)
  if (parsed.success) return
  const issue = parsed.error.issues[0]
  const place = issue?.path.join('.') ?? ''
  throw badEdit(
    `The changed arguments do not fit the tool: ${place === '' ? '' : `${place}: `}${issue?.message ?? 'wrong shape'}`,
  )
}

function badEdit(message: string): ProtocolError {
  return new ProtocolError('bad-request', { message })
}

/** Edited arguments of a pending call, and the person who edited them. */
export interface Edit {
  readonly args: Readonly<Record<string, unknown>>
  readonly by: Decider
}

export type MayEdit = (approval: Approval, edit: Edit) => Promise<boolean>

/**
 * Returns a function that checks the edited call against the policy. The terms of the approval apply to the original arguments: a person
 * who may approve a small payment alone must not turn it into a large one. If the policy fails, the edit is not allowed.
 */
export function createEditCheck(
  policy: ApprovalPolicy,
  onError: (error: unknown) => void,
): MayEdit {
  return async ({ chat, toolName }, { args, by }) => {
    let judged = true
    const terms = await resolvePolicy(
      policy,
      { chat, toolName, args },
      {
        // Without a policy verdict, the tool itself asked the chat's principal, and its terms do not depend on the arguments.
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

/** Returns the approval with the current hint of the policy. */
export type RefreshHint = (approval: Approval) => Promise<Approval>

/**
 * Returns a function that updates the hint of a pending approval from the policy. A hint often states a fact at the time of the call
 * ("Your wallet holds $1,000") that changes until a person decides. All other terms stay the same.
 */
export function createHintRefresh(
  policy: ApprovalPolicy,
  onError: (error: unknown) => void,
): RefreshHint {
  return async (approval) => {
    if (approval.state.name !== 'requested') return approval
    const { chat, toolName, args, terms } = approval
    const current = await resolvePolicy(
      policy,
      { chat, toolName, args },
      // A tool that requested the approval itself keeps its hint.
      { required: () => false, onError },
    )
    const hint = current?.hint ?? terms.hint
    return hint === terms.hint
      ? approval
      : { ...approval, terms: { ...terms, ...(hint !== undefined && { hint }) } }
  }
}

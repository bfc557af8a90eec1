import type { BaseTool } from '@google/adk'

import type { Approval } from '../../approvals/approval.ts'
import type { Decider } from '../../approvals/next-approval.ts'
import { isDecidedAloneBy } from '../../approvals/next-approval.ts'
import type { ApprovalPolicy } from '../../approvals/policy.ts'
import { resolvePolicy } from '../../approvals/policy.ts'
import { readArgumentsSchema } from '../../calls/arguments-schema.ts'
import { ProtocolError } from '../../protocol/errors.ts'

/** Refuses changed arguments that do not fit the schema of the tool (AP5). */
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

/** Returns the approval with the hint that the policy gives now. */
export type RefreshHint = (approval: Approval) => Promise<Approval>

/**
 * Asks the policy for its hint again when a pending approval is read. A hint often says what was true when the call was made ("Your
 * wallet holds $1,000"), and a person decides later. Everything else stays as it was asked.
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
      // A tool that asked by itself keeps its own hint.
      { required: () => false, onError },
    )
    const hint = current?.hint ?? terms.hint
    return hint === terms.hint
      ? approval
      : { ...approval, terms: { ...terms, ...(hint !== undefined && { hint }) } }
  }
}

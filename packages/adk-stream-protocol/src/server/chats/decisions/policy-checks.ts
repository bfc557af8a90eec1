import type { BaseTool } from '@google/adk'

import { findAnswerFault } from '../../../approvals/answer-schema.ts'
import type { Approval, Refusal } from '../../../approvals/approval.ts'
import type { Decider } from '../../../approvals/deciders.ts'
import { isDecidedAloneBy } from '../../../approvals/deciders.ts'
import type { ApprovalPolicy, PreviewResult } from '../../../approvals/policy.ts'
import {
  resolvePolicy,
  resolveVerdict,
  toPolicyCall,
  makePreview,
  previewApproval,
} from '../../../approvals/policy.ts'
import { readArgumentsSchema } from '../../../calls/arguments-schema.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { ShownPreview } from '../../../protocol/preview.ts'

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

/** Throws if the answer to a question does not fit its schema (AP421). Does nothing for an approval. */
export function checkAnswer({ terms }: Approval, answer: unknown): void {
  const { kind, schema = {} } = terms
  if (kind === undefined || kind === 'sign-in') return
  // A person who is asked to open a URL answers nothing.
  if (kind === 'elicitation' && terms.schema === undefined) return
  const fault =
    answer === undefined
      ? 'The answer is missing: send it as `payload`.'
      : findAnswerFault(schema, answer)
  if (fault !== undefined) throw new ProtocolError('invalid-answer', { message: fault })
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
  return async ({ chat, toolName, terms: { claims } }, { args, by }) => {
    let judged = true
    const terms = await resolvePolicy(
      policy,
      { chat, toolName, args, claims },
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

/** An approval with the current hint and preview of the policy. */
export interface CurrentApproval {
  readonly approval: Approval
  readonly preview: PreviewResult
}

export type RefreshApproval = (approval: Approval, reader: string) => Promise<CurrentApproval>

/**
 * Returns a function that updates the hint of a pending approval from the policy, and makes its preview for a reader. Both often state
 * a fact at the time of the call ("Balance: $1,000.00") that changes until a person decides. All other terms stay the same.
 */
export function createRefresh(
  policy: ApprovalPolicy,
  onError: (error: unknown) => void,
): RefreshApproval {
  return async (approval, reader) => {
    const { chat, toolName, args, terms } = approval
    // The policy does not apply to questions of MCP servers.
    if (approval.state.name !== 'requested' || terms.kind === 'elicitation')
      return { approval, preview: { state: 'none' } }
    const call = { chat, toolName, args, claims: terms.claims }
    // A tool that requested the approval itself keeps its hint.
    const current = await resolveVerdict(policy, call, { required: () => false, onError })
    const made = await makePreview(
      current?.functions.preview,
      { ...toPolicyCall(call), reader },
      onError,
    )
    const preview: PreviewResult =
      made.state === 'none' && terms.preview !== undefined ? { state: 'failed' } : made
    const hint = current?.terms.hint ?? terms.hint
    return {
      approval:
        hint === terms.hint
          ? approval
          : { ...approval, terms: { ...terms, ...(hint !== undefined && { hint }) } },
      preview,
    }
  }
}

/** The preview that an approver named. */
interface NamedPreview {
  readonly by: Decider
  /** The digest of the preview that the person saw, if the client sent it. */
  readonly digest: string | undefined
  /** The arguments to run, if the approver edited them. */
  readonly editedArgs?: Readonly<Record<string, unknown>> | undefined
}

export type CheckPreview = (
  approval: Approval,
  named: NamedPreview,
) => Promise<{ readonly seen?: ShownPreview } | Refusal>

/**
 * Returns a function that makes the preview of a call again before it is approved. The approval is refused if the person saw another
 * preview, if the call would fail as shown or as edited, or if that cannot be determined. A client that names no preview is a stock
 * client, which shows none: it is refused only if the policy requires a preview.
 */
export function createPreviewCheck(
  policy: ApprovalPolicy,
  onError: (error: unknown) => void,
): CheckPreview {
  const options = { policy, onError }
  return async (approval, { by, digest, editedArgs }) => {
    if (digest === undefined && approval.terms.preview !== 'required') return {}
    const made = await previewApproval(approval, by.id, options)
    if (made.state === 'none') return {}
    if (made.state === 'failed') return { refused: 'preview-failed' }
    const { preview } = made
    if (preview.digest !== digest) return { refused: 'preview-changed', preview }
    const run = editedArgs
      ? await previewApproval({ ...approval, args: editedArgs }, by.id, options)
      : made
    if (run.state !== 'made') return { refused: 'preview-failed' }
    if (run.preview.blocked !== undefined) return { refused: 'call-blocked', preview: run.preview }
    return { seen: preview }
  }
}

import type { BaseTool } from '@google/adk'

import { findAnswerFault } from '../../../approvals/answer-schema.ts'
import type { Approval, Refusal } from '../../../approvals/approval.ts'
import type { Decider } from '../../../approvals/deciders.ts'
import { isDecidedAloneBy } from '../../../approvals/deciders.ts'
import type { Decision } from '../../../approvals/next-approval.ts'
import { isAccepted } from '../../../approvals/next-approval.ts'
import { makePreview, previewApproval, previewCall } from '../../../approvals/policy-previews.ts'
import type { PreviewResult } from '../../../approvals/policy-previews.ts'
import type { ApprovalPolicy } from '../../../approvals/policy.ts'
import { resolvePolicy, resolveVerdict, toPolicyCall } from '../../../approvals/policy.ts'
import { readArgumentsSchema } from '../../../calls/arguments-schema.ts'
import type { CallKinds } from '../../../calls/call-kind.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { ShownPreview } from '../../../protocol/preview.ts'
import type { DecisionResponse } from '../../../protocol/read-responses.ts'
import type { BridgeLimits } from '../../settings/limits.ts'
import type { AppChatRef } from '../../../shared/chat-ref.ts'

/** Throws if the payload of a decision is too long. */
export function checkPayload(
  { payload }: DecisionResponse,
  { maxPayloadLength }: BridgeLimits,
): void {
  if (payload === undefined || JSON.stringify(payload).length <= maxPayloadLength) return
  const message = `The payload is longer than ${maxPayloadLength} characters of JSON. Send less.`
  throw new ProtocolError('too-large', { message })
}

/**
 * Checks the edited arguments or the answer of a person who approves a pending call. Throws if they do not fit. Returns a refusal if this
 * person may not approve the edited call alone.
 */
export async function checkApproved(
  { findTool, mayEdit, kinds }: EditChecks,
  approval: Approval,
  { sent, by, limits }: ApprovedBy,
): Promise<Refusal | undefined> {
  const { approved, editedArgs: args, payload } = sent
  if (!approved || approval.state.name !== 'requested') return undefined
  if (args) {
    checkSize(args, limits)
    checkEdit(await findTool(approval.chat, approval.toolName), args)
    // In all other cases the ledger itself refuses the decision, with its own code.
    const isAlone = isDecidedAloneBy(approval.terms, by)
    if (isAlone && !(await mayEdit(approval, { args, by }))) return { refused: 'not-editable' }
  }
  checkAnswer(kinds, approval, payload)
  return undefined
}

interface EditChecks {
  /** Finds a tool of the agent of a chat by its name. */
  readonly findTool: (chat: AppChatRef, toolName: string) => Promise<BaseTool | undefined>
  readonly mayEdit: MayEdit
  readonly kinds: CallKinds
}

interface ApprovedBy {
  readonly sent: DecisionResponse
  readonly by: Decider
  readonly limits: BridgeLimits
}

/** Edited arguments are stored and hashed several times, so this checks their size first. */
function checkSize(args: Readonly<Record<string, unknown>>, { maxTextLength }: BridgeLimits): void {
  if (JSON.stringify(args).length <= maxTextLength) return
  const message = `The changed arguments are longer than ${maxTextLength} characters of JSON.`
  throw new ProtocolError('too-large', { message })
}

/** Checks the preview of a call that a person approves. Makes no preview if the ledger would refuse the decision anyway. */
export async function checkPreview(
  backend: { readonly checkPreview: CheckPreview },
  approval: Approval,
  { decision, digest }: { readonly decision: Decision; readonly digest: string | undefined },
): ReturnType<CheckPreview> {
  const { by, approved, editedArgs } = decision
  // The policy may give a preview of the edited call only.
  if (!approved || (approval.terms.preview === undefined && !editedArgs)) return {}
  if (!isAccepted(approval, decision)) return {}
  return backend.checkPreview(approval, { by, digest, editedArgs })
}

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

/** Throws if the answer to a question does not fit its schema (AP421). Does nothing if none was asked for. */
function checkAnswer(kinds: CallKinds, approval: Approval, answer: unknown): void {
  const schema = kinds.of(approval).answer?.toSchema(approval.terms)
  if (!schema) return
  const fault =
    answer === undefined
      ? 'The answer is missing: send it as `payload`.'
      : findAnswerFault(schema, answer)
  if (fault !== undefined) throw new ProtocolError('invalid-answer', { message: fault })
}

/** Edited arguments of a pending call, and the person who edited them. */
interface Edit {
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
  /** The severity that the policy gives the arguments now. */
  readonly severity?: Approval['terms']['severity']
}

export type RefreshApproval = (approval: Approval, reader: string) => Promise<CurrentApproval>

/**
 * Returns a function that updates the hint of a pending approval from the policy, and makes its preview for a reader. Both often state
 * a fact at the time of the call ("Balance: $1,000.00") that changes until a person decides. All other terms stay the same.
 */
export function createRefresh(
  policy: ApprovalPolicy,
  kinds: CallKinds,
  onError: (error: unknown) => void,
): RefreshApproval {
  return async (approval, reader) => {
    const { chat, toolName, args, terms } = approval
    if (approval.state.name !== 'requested' || !kinds.of(approval).hasPolicy)
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
      severity: current?.terms.severity ?? terms.severity,
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
 * Returns a function that makes the preview of a call again before it is approved. The approval is refused if the call would fail, as
 * shown or as edited, or if that cannot be determined. It is also refused if the person saw another preview. A client that names no
 * preview is a stock client, which shows none: its preview is compared only if the policy requires that.
 */
export function createPreviewCheck(
  policy: ApprovalPolicy,
  onError: (error: unknown) => void,
): CheckPreview {
  const options = { policy, onError }
  return async (approval, { by, digest, editedArgs }) => {
    const { chat, toolName, terms } = approval
    const isCompared = digest !== undefined || terms.preview === 'required'
    const shown: PreviewResult =
      isCompared || !editedArgs
        ? await previewApproval(approval, by.id, options)
        : { state: 'none' }
    if (shown.state === 'failed') return { refused: 'preview-failed' }
    const call = { chat, toolName, args: editedArgs ?? approval.args, claims: terms.claims }
    const run = editedArgs ? await previewCall(call, by.id, options) : shown
    if (run.state === 'failed') return { refused: 'preview-failed' }
    // A person who edits the arguments sees the preview of the edited call, if their client shows it.
    const made = [run, shown].flatMap((each) => (each.state === 'made' ? each.preview : []))
    const seen = made.find((preview) => preview.digest === digest)
    const current = made.at(-1)
    if (isCompared && current && !seen) return { refused: 'preview-changed', preview: current }
    const isBlocked = run.state === 'made' && run.preview.blocked !== undefined
    if (isBlocked) return { refused: 'call-blocked', preview: run.preview }
    return seen ? { seen } : {}
  }
}

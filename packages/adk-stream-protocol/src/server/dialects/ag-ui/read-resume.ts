import { z } from 'zod'

import type { Approval, ApprovalStateName } from '../../../approvals/approval.ts'
import { UncheckedObject } from '../../../protocol/client-input.ts'
import type { ErrorCode } from '../../../protocol/errors.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { DecisionResponse } from '../../../protocol/read-responses.ts'
import { Digest } from '../../../protocol/read-responses.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import { withoutUndefined } from '../../../shared/collections.ts'
import type { Principal } from '../../auth/authenticate.ts'
import type { Backend } from '../../chats/backend.ts'
import { toDecider } from '../../chats/decisions/decision-results.ts'
import type { RefusedAnswer } from './interrupts.ts'
import type { ResumeEntry } from './run-input.ts'

/** The decisions of a request, and what it answers in vain. */
export interface ReadResume {
  readonly decisions: readonly { readonly decision: DecisionResponse; readonly messageId: string }[]
  readonly refused: readonly RefusedAnswer[]
}

/**
 * Reads what a request answers. AG1389: an answer to something that no longer waits, or that is no answer, does not fail the run, because
 * the client would stay blocked.
 */
export async function readResume(
  { ledger, kinds }: Backend,
  { principal, chat }: { readonly principal: Principal; readonly chat: ChatRef },
  entries: readonly ResumeEntry[],
): Promise<ReadResume> {
  const decisions: { decision: DecisionResponse; messageId: string }[] = []
  const refused: RefusedAnswer[] = []
  const refuse = (interruptId: string, code: ErrorCode, message?: string): void => {
    refused.push({ interruptId, code, message: message ?? new ProtocolError(code).message })
  }
  for (const entry of entries) {
    const { interruptId } = entry
    const approval = await ledger.get(interruptId, toDecider(principal))
    const isOwn = approval?.chat.principalId === chat.principalId
    if (!approval || !isOwn || approval.chat.chatId !== chat.chatId) {
      refuse(interruptId, 'unknown-approval')
      continue
    }
    const { name } = approval.state
    if (name !== 'requested') {
      refuse(interruptId, ENDED[name] ?? 'approval-decided')
      continue
    }
    const isQuestion = kinds.of(approval).answer !== undefined
    const decision = isQuestion ? toAnswer(entry) : toDecision(approval, entry)
    if (decision) decisions.push({ decision, messageId: approval.messageId })
    else refuse(interruptId, 'bad-request', BAD_DECISION)
  }
  return { decisions, refused }
}

const ENDED: Partial<Record<ApprovalStateName, ErrorCode>> = {
  expired: 'approval-expired',
  cancelled: 'approval-cancelled',
}

const BAD_DECISION =
  'The payload must be true, false, or { "approved": true or false, "reason"?, "editedArgs"?, "payload"?, "preview"? }.'

const Details = z.object({
  approved: z.boolean(),
  reason: z.string().max(2_000).nullish(),
  editedArgs: UncheckedObject.nullish(),
  payload: z.unknown().optional(),
  preview: Digest.nullish(),
})

function toDecision(
  { terms }: Approval,
  { interruptId: approvalId, status, payload: given }: ResumeEntry,
): DecisionResponse | undefined {
  if (status === 'cancelled') return { approvalId, approved: false, reason: CANCELLED }
  // To resolve what has no schema is to say that it is done. The ledger checks it.
  const plain = given === undefined && terms.kind !== undefined ? true : given
  const read = Details.safeParse(typeof plain === 'boolean' ? { approved: plain } : plain).data
  if (!read) return undefined
  const { approved, reason, editedArgs, payload, preview } = read
  return {
    approvalId,
    approved,
    ...withoutUndefined({
      reason: reason ?? undefined,
      editedArgs: editedArgs ?? undefined,
      payload,
      preview: preview ?? undefined,
    }),
  }
}

function toAnswer({ interruptId, status, payload }: ResumeEntry): DecisionResponse {
  const approvalId = interruptId
  if (status === 'cancelled') return { approvalId, approved: false, reason: CANCELLED }
  return { approvalId, approved: true, ...(payload !== undefined && { payload }) }
}

/** With a reason, the agent may ask for something else: the person has not denied the call itself (AP470). */
const CANCELLED = 'Cancelled by the person.'

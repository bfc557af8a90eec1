import { isDeepStrictEqual } from 'node:util'

import type { Approval, Refusal, RefusalCode } from '../../../approvals/approval.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import type { Decider } from '../../../approvals/deciders.ts'
import { argsToRun } from '../../../approvals/next-approval.ts'
import type { ErrorCode } from '../../../protocol/errors.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { DecisionResponse } from '../../../protocol/read-responses.ts'
import type { Principal } from '../../auth/authenticate.ts'

/** Returns a principal as the ledger knows the person who decides. */
export function toDecider({ id, roles = [] }: Principal): Decider {
  return { id, roles }
}

/** Whether no further decision is needed. */
export function isSettled(result: Approval | Refusal): result is Approval {
  return !isRefusal(result) && result.state.name !== 'requested'
}

/** Whether a decision was recorded as a vote, and other people have still to decide. */
export function isVote(result: Approval | Refusal): result is Approval {
  return !isRefusal(result) && result.state.name === 'requested'
}

/** A decision and the result of recording it. */
export interface RecordedDecision {
  readonly decision: DecisionResponse
  readonly result: Approval | Refusal
}

/** Throws if a client may not continue with one of its decisions. */
export function checkResults(entries: readonly RecordedDecision[]): void {
  const rejected = entries.flatMap(({ decision, result }) =>
    isRefusal(result) && !isConsistent(decision, result) ? [result] : [],
  )[0]
  if (!rejected) return
  throw toError(rejected)
}

/** AP836: adds to the error of a request how many of its decisions took effect. */
export function addTakenCount(error: unknown, taken: number, all: number): unknown {
  if (!(error instanceof ProtocolError) || taken === 0) return error
  const { code, preview, retryAfterSeconds } = error
  const message = `${error.message} ${taken} of the ${all} decisions of this request took effect. Load the chat to see which.`
  const retry = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
  return new ProtocolError(code, { message, preview, cause: error, ...retry })
}

/**
 * Whether a client may continue with a decision that was refused. A client must not keep a decision that was not recorded, or that
 * contradicts the outcome: AI SDK 6 and 7 resend the first again and again, and treat the second as an invalid message.
 */
function isConsistent({ approved }: DecisionResponse, result: Refusal): boolean {
  if (result.refused === 'already-decided') return approved === (result.state.name !== 'denied')
  // The outcome is then a tool error, which is consistent with a late approval.
  return approved && (result.refused === 'expired' || result.refused === 'cancelled')
}

/** Whether a refused decision repeats the recorded one: the same decision, arguments and payload. */
export function isDuplicate(
  approval: Approval,
  { approved, editedArgs = approval.args, payload }: DecisionResponse,
  { refused }: Refusal,
): boolean {
  // Only approvals count as votes. A denial decides at once.
  if (refused === 'already-voted') return approved
  if (refused !== 'already-decided') return false
  const wasApproved = approval.state.name !== 'denied'
  if (!approved) return !wasApproved
  const recorded = 'payload' in approval.state ? approval.state.payload : undefined
  return (
    wasApproved &&
    isDeepStrictEqual(editedArgs, argsToRun(approval)) &&
    isDeepStrictEqual(payload, recorded)
  )
}

const ERRORS: Record<RefusalCode, ErrorCode> = {
  'unknown-approval': 'unknown-approval',
  'not-allowed': 'not-allowed',
  'already-decided': 'approval-decided',
  'already-voted': 'approval-voted',
  'already-counted': 'not-allowed',
  'not-voted': 'not-voted',
  expired: 'approval-expired',
  cancelled: 'approval-cancelled',
  'not-editable': 'not-editable',
  'no-payload': 'no-payload',
  'preview-changed': 'preview-changed',
  'preview-failed': 'preview-failed',
  'call-blocked': 'call-blocked',
  'answered-by-server': 'sign-in-needed',
  'not-approved': 'approval-decided',
  mismatch: 'approval-cancelled',
  'invalid-means': 'unknown-approval',
  'not-offered': 'not-allowed',
  'too-many-pending': 'approval-cancelled',
  'not-due': 'approval-decided',
}

const COUNTS_ALREADY =
  'A person can approve a call once. A vote by a link also counts for the person who created the link and for the browser that opened it, and a vote in the place of another person for both people. Another person must approve.'

/** Returns the error for a client whose decision the ledger refused. */
export function toError(refusal: Refusal): ProtocolError {
  const code = ERRORS[refusal.refused]
  if ('message' in refusal) return new ProtocolError(code, { message: refusal.message })
  if (refusal.refused === 'already-counted')
    return new ProtocolError(code, { message: COUNTS_ALREADY })
  if (!('preview' in refusal)) return new ProtocolError(code)
  const { preview } = refusal
  const isBlocked = refusal.refused === 'call-blocked' && preview.blocked !== undefined
  return new ProtocolError(code, { preview, ...(isBlocked && { message: preview.blocked }) })
}

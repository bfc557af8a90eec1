import type { ShownPreview } from '../protocol/preview.ts'
import type { ApprovalState } from './approval.ts'

/** The reason why a command changed nothing. */
export type Refusal =
  /** The approval does not exist, or the principal may not see it. */
  | { readonly refused: 'unknown-approval' }
  /** The principal may see the approval but may not decide it, or not yet. */
  | { readonly refused: 'not-allowed' }
  /** The approval was already decided, and the call may have run. `state` is its current state. */
  | { readonly refused: 'already-decided'; readonly state: ApprovalState }
  /** The principal has already approved. Other people still have to decide. */
  | { readonly refused: 'already-voted' }
  /** The principal has no vote to withdraw. */
  | { readonly refused: 'not-voted' }
  | { readonly refused: 'expired' }
  | { readonly refused: 'cancelled' }
  /** Other people must approve the call too, so one of them cannot edit it. */
  | { readonly refused: 'not-editable' }
  /** The tool requested no payload. */
  | { readonly refused: 'no-payload' }
  /** The preview is not the one that the person saw. */
  | { readonly refused: 'preview-changed'; readonly preview: ShownPreview }
  /** The preview cannot be made now. */
  | { readonly refused: 'preview-failed' }
  /** The preview says that the call would fail. */
  | { readonly refused: 'call-blocked'; readonly preview: ShownPreview }
  /** Only the server answers a sign-in, when it has the credential. */
  | { readonly refused: 'sign-in-needed' }
  /** The call is not approved, or this worker does not run it. */
  | { readonly refused: 'not-approved' }
  /** The call differs from the one that people saw. */
  | { readonly refused: 'mismatch' }
  /** The link does not exist, was used, or has expired. */
  | { readonly refused: 'link-invalid' }
  | { readonly refused: 'too-many-pending' }
  /** The deadline has not passed. Only the sweep of the ledger gets this. */
  | { readonly refused: 'not-due' }

export type RefusalCode = Refusal['refused']

/** Whether a result is a refusal. */
export function isRefusal(result: object): result is Refusal {
  return 'refused' in result
}

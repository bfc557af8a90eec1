import type { ApprovalState } from './approval.ts'

/** Why a command changes nothing. */
export type Refusal =
  /** There is no such approval, or none that this principal may know of. */
  | { readonly refused: 'unknown-approval' }
  /** The principal may see the approval, and may not decide it, or not yet. */
  | { readonly refused: 'not-allowed' }
  /** It has been decided, and perhaps run; `state` tells how. */
  | { readonly refused: 'already-decided'; readonly state: ApprovalState }
  /** The principal has approved, and others have still to decide. */
  | { readonly refused: 'already-voted' }
  /** There is no vote of this principal to withdraw. */
  | { readonly refused: 'not-voted' }
  | { readonly refused: 'expired' }
  | { readonly refused: 'cancelled' }
  /** Others have to decide it too, as it was shown or as it would be changed: one alone may not change what they see. */
  | { readonly refused: 'not-editable' }
  /** The tool asked for no payload. */
  | { readonly refused: 'no-payload' }
  /** The call waits for a decision, or the worker does not run it. */
  | { readonly refused: 'not-approved' }
  /** The call is not the one that was shown. */
  | { readonly refused: 'mismatch' }
  | { readonly refused: 'too-many-pending' }
  /** The deadline has not passed. Only the ledger's own sweep meets it. */
  | { readonly refused: 'not-due' }

export type RefusalCode = Refusal['refused']

/** Tells a refusal from what was asked for. */
export function isRefusal(result: object): result is Refusal {
  return 'refused' in result
}

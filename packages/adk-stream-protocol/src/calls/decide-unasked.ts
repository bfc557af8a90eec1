import { randomUUID } from 'node:crypto'

import type { Session } from '@google/adk'

import { describeEnding, toApprovedNote } from '../agent/call-responses.ts'
import { toAskedNote } from '../agent/events/approval-notes.ts'
import type { UnaskedNote } from '../agent/events/event-notes.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { PreviewResult } from '../approvals/policy-previews.ts'
import { previewApproval } from '../approvals/policy-previews.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { toClaim } from './approved-call.ts'
import type { TermsOptions } from './call-kind.ts'
import { withUserText } from './call-terms.ts'

/** An approval that was decided when its call was made: the call is claimed, or denied. */
interface UnaskedApproval {
  readonly approval: Approval
  readonly note: UnaskedNote
}

interface CallInMessage {
  readonly messageId: string
  readonly terms: ResolvedTerms
  readonly session: Session
}

/**
 * Decides a call by an earlier decision of a person, and claims it in the same commit if it is approved. Returns undefined if somebody has
 * to be asked.
 */
export async function decideUnasked(
  call: ToolCall,
  { messageId, terms: { deadlineMs, ...resolved }, session }: CallInMessage,
  options: TermsOptions & { readonly ledger: Ledger },
): Promise<UnaskedApproval | undefined> {
  const { ledger, prior, onError } = options
  // Only calls that grants can cover have it.
  if (!prior || resolved.declaration === undefined) return undefined
  const terms = withUserText(resolved, session.events, messageId)
  const claim = toClaim(call)
  const decision = await prior
    .find({ ...claim, terms, events: session.events }, ledger)
    .catch((error: unknown) => {
      onError(error)
      return undefined
    })
  if (!decision) return undefined
  const made = await previewApproval({ ...claim, terms }, claim.chat.principalId, options)
  if (decision.approved && isStopping(made)) return undefined
  // The same form as the ids of ADK's confirmations.
  const request = { id: `adk-${randomUUID()}`, ...claim, messageId, terms, deadlineMs }
  const approval = await ledger.requestDecided(request, decision)
  if (!approval) return undefined
  const decided = describeEnding(approval)?.note ?? toApprovedNote(approval)
  return { approval, note: { asked: toAskedNote(approval, made), decided } }
}

/** Whether a person has to look at a preview: it says that the call would fail, or cannot be made. */
function isStopping(made: PreviewResult): boolean {
  return made.state === 'failed' || (made.state === 'made' && made.preview.blocked !== undefined)
}

import type { UIMessage } from 'ai'

import type { WaitingDecisions } from '../../client/api/decision-outbox.ts'
import type { Approval, ApprovalDetails, Votes } from './approval.ts'
import { isPending, readApprovals } from './approval.ts'
import { type Call, isCall } from './call.ts'

/** A call that waits for a decision of this person. */
export interface UndecidedCall {
  readonly call: Call
  /** With the current preview. */
  readonly approval: Approval
}

interface DecidedChat {
  readonly messages: readonly UIMessage[]
  readonly votes: ReadonlyMap<string, Votes>
  readonly details: ReadonlyMap<string, ApprovalDetails>
  readonly unconfirmed: ReadonlySet<string>
  readonly waitingDecisions: WaitingDecisions
}

/** Returns the calls of a chat that this person has not decided, the oldest first. */
export function findUndecided(chat: DecidedChat): UndecidedCall[] {
  return chat.messages.flatMap((message) => {
    const approvals = readApprovals(message)
    if (approvals.size === 0) return []
    return message.parts.flatMap((part) => {
      const approval = isCall(part) ? approvals.get(part.toolCallId) : undefined
      if (!approval || !isCall(part) || !isPending(part, approval)) return []
      const { approvalId } = approval
      const isDecided =
        chat.votes.get(approvalId)?.voted === true ||
        chat.unconfirmed.has(approvalId) ||
        chat.waitingDecisions.has(approvalId)
      const current = chat.details.get(approvalId)
      const preview = current ? current.preview : approval.preview
      return isDecided ? [] : [{ call: part, approval: { ...approval, preview } }]
    })
  })
}

import type { UIMessage } from 'ai'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import { type Approval, type Decision, readApprovals } from '../reading/approval.ts'

interface DecisionTarget {
  readonly chat: {
    readonly messages: readonly UIMessage[]
    addToolApprovalResponse(response: {
      id: string
      approved: boolean
      reason?: string
      options?: { body?: object }
    }): void | PromiseLike<void>
  }
  readonly attached: AttachedChat | undefined
  readonly api: Pick<AdkApi, 'decide'> | undefined
}

/** Sends a decision through the `api`, the attached chat, or the plain AI SDK chat. */
export async function sendDecision(
  { chat, attached, api }: DecisionTarget,
  approvalId: string,
  decision: Decision,
): Promise<void> {
  const { approved, reason, args, payload } = decision
  const withReason = reason === undefined ? {} : { reason }
  // If several people must approve, one vote decides nothing yet, so the chat must not show a decision.
  if (api && (findApproval(chat.messages, approvalId)?.approvers ?? 1) > 1) {
    await api.decide(approvalId, decision)
  } else if (!attached) {
    const options = payload !== undefined && { body: { payloads: { [approvalId]: payload } } }
    await chat.addToolApprovalResponse({
      id: approvalId,
      approved,
      ...withReason,
      ...(options && { options }),
    })
  } else if (approved) {
    await attached.approve(approvalId, {
      ...withReason,
      ...(args && { args }),
      ...(payload !== undefined && { payload }),
    })
  } else {
    await attached.deny(approvalId, reason)
  }
}

function findApproval(messages: readonly UIMessage[], approvalId: string): Approval | undefined {
  return messages
    .flatMap((message) => [...readApprovals(message).values()])
    .find((approval) => approval.approvalId === approvalId)
}

import type { UIMessage } from 'ai'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import { type Approval, type Decision, readApprovals } from '../reading/approval.ts'

interface Place {
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

/** Decides a call on the way that its chat has. */
export async function decideIn(
  { chat, attached, api }: Place,
  approvalId: string,
  decision: Decision,
): Promise<void> {
  const { approved, reason, args, payload } = decision
  const said = reason === undefined ? {} : { reason }
  // One vote of several decides nothing yet: the chat must not show it as decided.
  if (api && (findApproval(chat.messages, approvalId)?.approvers ?? 1) > 1) {
    await api.decide(approvalId, decision)
  } else if (!attached) {
    const options = payload !== undefined && { body: { payloads: { [approvalId]: payload } } }
    await chat.addToolApprovalResponse({
      id: approvalId,
      approved,
      ...said,
      ...(options && { options }),
    })
  } else if (approved) {
    await attached.approve(approvalId, {
      ...said,
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

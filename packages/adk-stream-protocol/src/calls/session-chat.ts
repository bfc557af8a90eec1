import type { Session } from '@google/adk'

import type { ApprovalChat } from '../approvals/approval.ts'

/** The chat of an ADK session, as the ledger names it. */
export function chatOf({ appName, userId, id }: Session): ApprovalChat {
  return { appName, principalId: userId, chatId: id }
}

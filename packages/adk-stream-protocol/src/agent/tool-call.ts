import type { BaseTool, Context, Session } from '@google/adk'
import type { ApprovalChat } from '../approvals/approval.ts'

/** A call as ADK hands it to its callbacks. */
export interface ToolCall {
  readonly tool: BaseTool
  readonly toolArgs: Record<string, unknown>
  readonly toolContext: Context
}

/** The chat of an ADK session, as the ledger names it. */
export function chatOf({ appName, userId, id }: Session): ApprovalChat {
  return { appName, principalId: userId, chatId: id }
}

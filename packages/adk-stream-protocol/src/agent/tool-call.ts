import type { BaseTool, Context, Session } from '@google/adk'
import type { AppChatRef } from '../shared/chat-ref.ts'

/** A tool call as ADK passes it to callbacks. */
export interface ToolCall {
  readonly tool: BaseTool
  readonly toolArgs: Record<string, unknown>
  readonly toolContext: Context
}

/** Returns the chat of an ADK session. */
export function chatOf({ appName, userId, id }: Session): AppChatRef {
  return { appName, principalId: userId, chatId: id }
}

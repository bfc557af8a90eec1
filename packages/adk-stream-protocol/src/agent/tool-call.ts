import type { BaseTool, Context, Session } from '@google/adk'

import { isRecord } from '../protocol/guards.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'

/** A tool call as ADK passes it to callbacks. */
export interface ToolCall {
  readonly tool: BaseTool
  readonly toolArgs: Record<string, unknown>
  readonly toolContext: Context
}

/** Whether a call is one of ADK's own requests to a client: for a confirmation, an input or a credential. The model does not see them. */
export function isAdkRequest({ name }: { readonly name?: string | undefined }): boolean {
  return name?.startsWith('adk_request_') === true
}

/** Returns the call that ADK requests a confirmation for, from the arguments of the request. */
export function readOriginalCall(
  args: Readonly<Record<string, unknown>> | undefined,
): Readonly<Record<string, unknown>> | undefined {
  const call = args?.['originalFunctionCall']
  return isRecord(call) ? call : undefined
}

/** Returns the chat of an ADK session. */
export function chatOf({ appName, userId, id }: Session): AppChatRef {
  return { appName, principalId: userId, chatId: id }
}

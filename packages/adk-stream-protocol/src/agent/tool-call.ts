import { randomUUID } from 'node:crypto'

import type { BaseTool, Context, Event, Session } from '@google/adk'
import { getFunctionCalls } from '@google/adk'
import type { FunctionCall } from '@google/genai'

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

/** The start of the ids of the calls that the bridge makes for tools that are nodes of a workflow. */
const TOOL_NODE_CALL = 'tool-node-'

/** Whether the bridge made a call for a tool that is a node. */
function isToolNodeCall(id = ''): boolean {
  return id.startsWith(TOOL_NODE_CALL)
}

/** Returns an id for the call of a tool that is a node, in the form that ADK uses: two names and `:` between them. */
export function createToolNodeCallId(): string {
  return `${TOOL_NODE_CALL}${randomUUID()}:1`
}

/** Whether the model wrote an event, as opposed to a user, a tool or ADK. */
export function isModelOutput(event: Event): boolean {
  if (event.author === undefined || event.author === 'user') return false
  const parts = event.content?.parts ?? []
  if (parts.some(({ functionResponse }) => functionResponse !== undefined)) return false
  if (getFunctionCalls(event).some(isCallOfAnother)) return false
  const hasOutput =
    parts.length > 0 || event.usageMetadata !== undefined || event.outputTranscription !== undefined
  return hasOutput || event.errorCode !== undefined
}

/** Whether ADK made a call, or the bridge for a tool that is a node. */
function isCallOfAnother(call: FunctionCall): boolean {
  return isAdkRequest(call) || isToolNodeCall(call.id)
}

/** Returns the call with an id. */
export function findCall(events: readonly Event[], toolCallId: string): FunctionCall | undefined {
  return events
    .flatMap(({ content }) => content?.parts ?? [])
    .find(({ functionCall }) => functionCall?.id === toolCallId)?.functionCall
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

/**
 * Returns the ids of a tool call. A long-running tool passes them to the job that it starts, and the job passes them
 * to `bridge.completeCall()` with the result. Throws if the context does not belong to a tool call.
 */
export function callAddress({
  userId,
  sessionId,
  functionCallId,
}: Pick<Context, 'userId' | 'sessionId' | 'functionCallId'>): {
  readonly principalId: string
  readonly chatId: string
  readonly toolCallId: string
} {
  if (functionCallId === undefined)
    throw new TypeError('callAddress needs the context of a tool call.')
  return { principalId: userId, chatId: sessionId, toolCallId: functionCallId }
}

/**
 * Returns a key that is unique for a call and the same for each attempt to run it. Pass it to services that accept an
 * idempotency key, so that a payment is made only once. Throws if the context does not belong to a tool call.
 */
export function idempotencyKey({
  userId,
  sessionId,
  functionCallId,
}: Pick<Context, 'userId' | 'sessionId' | 'functionCallId'>): string {
  if (functionCallId === undefined)
    throw new TypeError('idempotencyKey needs the context of a tool call.')
  return JSON.stringify([userId, sessionId, functionCallId])
}

import type { Context } from '@google/adk'

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

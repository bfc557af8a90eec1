import type { Context } from '@google/adk'

/**
 * Where a tool call was made. A long-running tool hands this to the job that it starts, and the job passes it to
 * `bridge.completeCall()` with the result.
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
 * A key that is the same for every try to run one call, and another for every other call: what a payment service wants in order to
 * pay once.
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

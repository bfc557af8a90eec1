import type { Context } from '@google/adk'

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

import { expect, test } from 'vitest'

import { idempotencyKey } from '../../src/agent/tool-call.ts'

const call = { userId: 'u1', sessionId: 's1', functionCallId: 'c1' }

test('[AP28] a call has one key, which no other call has', () => {
  expect(idempotencyKey(call)).toBe(idempotencyKey({ ...call }))
  const others = [
    { ...call, userId: 'u2' },
    { ...call, sessionId: 's2' },
    { ...call, functionCallId: 'c2' },
    { userId: 'u1","s1', sessionId: '', functionCallId: 'c1' },
  ]
  for (const other of others) expect(idempotencyKey(other)).not.toBe(idempotencyKey(call))
})

test('[AP28] there is no key outside a call', () => {
  const { userId, sessionId } = call
  expect(() => idempotencyKey({ userId, sessionId })).toThrow(/context of a tool call/)
})

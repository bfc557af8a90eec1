import { expect, test } from 'vitest'

import type { Message } from '../src/page/chat/message.ts'
import { readProblem } from '../src/page/chat/problem.ts'
import { planRecovery } from '../src/page/chat/recovery.ts'

const user: Message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'こんにちは' }] }
const answer: Message = { id: 'a1', role: 'assistant', parts: [{ type: 'text', text: 'Hello' }] }
const failed: Message = {
  ...answer,
  metadata: { error: { code: 'model-rate-limited', message: 'Later.', retryAfterSeconds: 7 } },
}
const next: Message = { id: 'u2', role: 'user', parts: [{ type: 'text', text: 'And now?' }] }

const refusal = (code: string, extra = {}) =>
  new Error(JSON.stringify({ error: { code, message: 'A sentence.', ...extra } }))

test.each([
  [new Error('Later.'), failed, { kind: 'rate-limited', seconds: 7 }],
  [refusal('too-many-turns', { retryAfterSeconds: 2 }), user, { kind: 'rate-limited', seconds: 2 }],
  [refusal('turn-running'), user, { kind: 'busy' }],
  [refusal('unauthenticated'), user, { kind: 'signed-out' }],
  [refusal('too-large'), user, { kind: 'refused', message: 'A sentence.' }],
  [refusal('too-many-live-chats'), user, { kind: 'refused', message: 'A sentence.' }],
  [refusal('internal'), failed, { kind: 'unavailable' }],
  [new TypeError('network error'), answer, { kind: 'disconnected' }],
  [new Error('{oops'), answer, { kind: 'unavailable' }],
  [new Error('{"other":1}'), undefined, { kind: 'unavailable' }],
])('[DM25] %s is told by what to do about it', (error, last, problem) => {
  expect(readProblem(error, last)).toEqual(problem)
})

test.each([
  { when: 'the server has no such chat', shown: [user], step: 'resend' },
  { when: 'it never arrived', shown: [user, answer, next], saved: [user, answer], step: 'resend' },
  { when: 'its answer failed', shown: [user, failed], saved: [user, failed], step: 'regenerate' },
  { when: 'its answer was never begun', shown: [user], saved: [user], step: 'regenerate' },
  { when: 'its answer is complete', shown: [user], saved: [user, answer], step: 'show' },
])('[DM25] the way on from a message when $when', ({ shown, saved, step }) => {
  const chat = saved && { messages: saved, running: false }
  expect(planRecovery(shown, chat)).toMatchObject({ step })
})

test('[DM25] an answer that is still being written is resumed from its first word', () => {
  const plan = planRecovery([user, answer], { messages: [user], running: true })
  expect(plan).toEqual({ step: 'resume', messages: [user] })
})

test('[DM25] a message that never arrived is sent again after what was before it', () => {
  const plan = planRecovery([user, answer, next], { messages: [user, answer], running: false })
  expect(plan).toEqual({ step: 'resend', message: next, before: [user, answer] })
})

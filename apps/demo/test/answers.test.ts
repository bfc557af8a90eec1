import { expect, test } from 'vitest'

import { Answers } from '../src/page/chat/answers.ts'
import type { Message, Part } from '../src/page/chat/message.ts'

test('[DM36] one decision is sent at once, while another call still waits', () => {
  const answers = new Answers(() => false)
  expect(answers.areWaiting({ messages: [answer(ASKED, RESPONDED)] })).toBe(true)
  expect(answers.areWaiting({ messages: [answer(ASKED)] })).toBe(false)
})

test('[DM36] what has been answered by the server is not sent again', () => {
  const answers = new Answers(() => false)
  expect(answers.areWaiting({ messages: [answer(DONE)] })).toBe(false)
  expect(answers.areWaiting({ messages: [answer(RESPONDED), QUESTION] })).toBe(false)
})

test('[DM42] an approved call of the browser is sent with its output, and once', () => {
  const answers = new Answers(() => true)
  expect(answers.areWaiting({ messages: [answer(RESPONDED)] })).toBe(false)
  answers.addOutput('call-2')
  const message = answer(DONE)
  expect(answers.areWaiting({ messages: [message] })).toBe(true)
  expect(answers.take(message)).toEqual({})
  expect(answers.areWaiting({ messages: [message] })).toBe(false)
})

test('[DM42] a denied call of the browser is sent without an output', () => {
  const answers = new Answers(() => true)
  expect(answers.areWaiting({ messages: [answer(DENIED)] })).toBe(true)
})

test('[DM35] an edit travels with the decision it belongs to', () => {
  const answers = new Answers(() => false)
  answers.edit('approval-2', { amount: 40 })
  answers.edit('approval-9', { amount: 90 })
  expect(answers.take(answer(RESPONDED))).toEqual({ edits: { 'approval-2': { amount: 40 } } })
  answers.edit('approval-2', undefined)
  expect(answers.take(answer(RESPONDED))).toEqual({})
})

const ASKED: Part = {
  type: 'tool-pay',
  toolCallId: 'call-1',
  state: 'approval-requested',
  input: {},
  approval: { id: 'approval-1' },
}
const RESPONDED: Part = {
  type: 'tool-pay',
  toolCallId: 'call-2',
  state: 'approval-responded',
  input: {},
  approval: { id: 'approval-2', approved: true },
}
const DENIED: Part = { ...RESPONDED, approval: { id: 'approval-2', approved: false } }
const DONE: Part = {
  type: 'tool-pay',
  toolCallId: 'call-2',
  state: 'output-available',
  input: {},
  output: {},
  approval: { id: 'approval-2', approved: true },
}
const QUESTION: Message = { id: 'm2', role: 'user', parts: [{ type: 'text', text: 'And?' }] }

function answer(...parts: Part[]): Message {
  return { id: 'm1', role: 'assistant', parts }
}

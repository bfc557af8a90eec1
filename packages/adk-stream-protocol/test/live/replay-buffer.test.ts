import type { Content } from '@google/genai'
import { expect, onTestFinished, test, vi } from 'vitest'

import type { Outgoing } from '../../src/modules/live/gemini/replay-buffer.ts'
import { ReplayBuffer } from '../../src/modules/live/gemini/replay-buffer.ts'

const text = (words: string): Outgoing => ({
  type: 'content',
  content: { role: 'user', parts: [{ text: words }] },
})

function write(buffer: ReplayBuffer, words: string): void {
  buffer.markSent(buffer.add(text(words)))
}

function linesOf(history: readonly Content[]): string[] {
  return history.map(({ role, parts }) => `${role}: ${parts?.[0]?.text}`)
}

function reconnect(buffer: ReplayBuffer) {
  const { start, dropped } = buffer.prepareReconnect()
  const resent = buffer.unsent.map(({ message }) =>
    message.type === 'content' ? message.content.parts?.[0]?.text : message.responses[0]?.id,
  )
  return start.type === 'resumed'
    ? { handle: start.handle, resent, dropped: dropped.length }
    : { history: linesOf(start.history), resent, dropped: dropped.length }
}

test('[LC9] a message that was in transit when a handle arrived is resent', () => {
  const buffer = new ReplayBuffer()
  write(buffer, 'one')
  buffer.checkpoint('h1')
  expect(reconnect(buffer)).toEqual({ handle: 'h1', resent: ['one'], dropped: 0 })
})

test('[LC9] [LV882] a message in transit is also resent if the clock of the system is set meanwhile', () => {
  onTestFinished(() => void vi.useRealTimers())
  vi.useFakeTimers({ toFake: ['Date'] })
  const buffer = new ReplayBuffer()
  write(buffer, 'one')
  vi.setSystemTime(Date.now() + 3_600_000)
  buffer.checkpoint('h1')
  expect(reconnect(buffer)).toEqual({ handle: 'h1', resent: ['one'], dropped: 0 })
})

test('[LC9] the rest of a turn is no reply to a message that was sent during it', () => {
  const buffer = new ReplayBuffer()
  write(buffer, 'one')
  buffer.addModelSpeech('Well')
  write(buffer, 'two')
  buffer.addModelSpeech(', one.')
  buffer.endTurn()
  buffer.checkpoint('h1')
  expect(reconnect(buffer)).toEqual({ handle: 'h1', resent: ['two'], dropped: 0 })
})

test('[LC9] a turn is no reply to the message that interrupts it', () => {
  const buffer = new ReplayBuffer()
  buffer.checkpoint('h0')
  buffer.addModelSpeech('Well')
  write(buffer, 'two')
  buffer.endTurn()
  expect(reconnect(buffer)).toEqual({ history: ['model: Well'], resent: ['two'], dropped: 0 })
})

test('[LC9] the user’s speech is resent only if the model has started to reply to it', () => {
  const buffer = new ReplayBuffer()
  buffer.checkpoint('h0')
  buffer.addUserSpeech('What is ')
  buffer.addUserSpeech('this?')
  expect(reconnect(buffer).resent).toEqual([])
  buffer.addUserSpeech('What is ')
  buffer.addUserSpeech('this?')
  buffer.addModelSpeech('')
  expect(reconnect(buffer)).toEqual({ handle: 'h0', resent: ['What is this?'], dropped: 0 })
})

test('[LC9] without a handle, only messages without a reply are resent', () => {
  const buffer = new ReplayBuffer()
  write(buffer, 'one')
  buffer.addModelSpeech('First.')
  buffer.endTurn()
  write(buffer, 'two')
  buffer.addModelSpeech('Sec')
  expect(reconnect(buffer)).toEqual({
    history: ['user: one', 'model: First.'],
    resent: ['two'],
    dropped: 0,
  })
  // The attempt fails, and the next one is the same.
  expect(reconnect(buffer)).toMatchObject({ resent: ['two'], history: { length: 2 } })
})

test('[LC9] a turn replies to one message or to the results, and not to a later message', () => {
  const buffer = new ReplayBuffer()
  buffer.checkpoint('h0')
  write(buffer, 'one')
  write(buffer, 'two')
  buffer.addModelSpeech('First.')
  buffer.endTurn()
  expect(reconnect(buffer)).toMatchObject({ resent: ['two'] })
  const other = new ReplayBuffer()
  write(other, 'meanwhile')
  other.markSent(other.add({ type: 'results', responses: [{ id: 'c1', name: 'pay' }] }))
  other.addModelSpeech('Paid.')
  other.endTurn()
  expect(reconnect(other)).toMatchObject({ resent: ['meanwhile'] })
})

test('[LC9] a message whose reply was interrupted before its start is not resent', () => {
  const buffer = new ReplayBuffer()
  write(buffer, 'one')
  write(buffer, 'two')
  buffer.endTurn()
  expect(reconnect(buffer)).toMatchObject({ resent: ['two'] })
})

test('[LC9] a handle covers a message that was sent a second before it', () => {
  let now = 0
  const buffer = new ReplayBuffer(undefined, [], () => now)
  write(buffer, 'one')
  now = 900
  write(buffer, 'two')
  now = 1000
  buffer.checkpoint('h1')
  expect(reconnect(buffer)).toEqual({ handle: 'h1', resent: ['two'], dropped: 0 })
  // No handle covers a message that is still unsent, however old it is.
  now = 5000
  buffer.checkpoint('h2')
  expect(reconnect(buffer)).toMatchObject({ handle: 'h2', resent: ['two'] })
})

test('[LC12] the connection does not know a call that another agent received', () => {
  const buffer = new ReplayBuffer()
  buffer.addCall({ id: 'c1', name: 'pay' })
  buffer.registerCall({ id: 'c2', name: 'no_such_tool' })
  expect(['c1', 'c2', 'of another'].map((id) => buffer.isLost(id))).toEqual([false, false, true])
  expect(new ReplayBuffer('a handle').isLost('from before')).toBe(false)
})

test('[LC12] the message that led to a call is never resent, even with an older handle', () => {
  const buffer = new ReplayBuffer()
  buffer.checkpoint('h0')
  write(buffer, 'pay')
  buffer.addModelSpeech('Paying.')
  buffer.addCall({ id: 'c1', name: 'pay', args: { amount: 5 } })
  expect(reconnect(buffer)).toEqual({
    history: ['user: pay', 'model: Paying.', 'model: [called pay({"amount":5})]'],
    resent: [],
    dropped: 0,
  })
  expect(buffer.isLost('c1')).toBe(true)
})

test('[LC12] a result is resent if the model’s reply to it is not complete', () => {
  const buffer = new ReplayBuffer()
  write(buffer, 'pay')
  buffer.addCall({ id: 'c1', name: 'pay' })
  buffer.markSent(
    buffer.add({ type: 'results', responses: [{ id: 'c1', name: 'pay', response: {} }] }),
  )
  buffer.addModelSpeech('Pa')
  expect(reconnect(buffer)).toMatchObject({ resent: ['c1'], history: { length: 2 } })
})

test('[LC17] a handle that arrives before the model has read the history is ignored', () => {
  const buffer = new ReplayBuffer()
  buffer.setHistory([{ role: 'user', parts: [{ text: 'before' }] }])
  buffer.checkpoint('too early')
  expect(reconnect(buffer)).toMatchObject({ history: ['user: before'] })
  buffer.addModelSpeech('Hello.')
  buffer.endTurn()
  buffer.checkpoint('h1')
  expect(reconnect(buffer)).toMatchObject({ handle: 'h1' })
})

test('[LC6] after a rejected handle, the whole conversation becomes the history', () => {
  const buffer = new ReplayBuffer('from before', [{ role: 'user', parts: [{ text: 'zero' }] }])
  write(buffer, 'one')
  buffer.addModelSpeech('First.')
  buffer.endTurn()
  buffer.checkpoint('h1')
  expect(buffer.dropHandle()).toBe(true)
  expect(buffer.dropHandle()).toBe(false)
  expect(reconnect(buffer)).toMatchObject({ history: ['user: zero', 'user: one', 'model: First.'] })
})

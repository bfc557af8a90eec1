import type { Content } from '@google/genai'
import { expect, test } from 'vitest'

import type { Sending } from '../../src/gemini-live/replay-entry.ts'
import { LiveJournal } from '../../src/gemini-live/replay-buffer.ts'

const text = (words: string): Sending => ({
  type: 'content',
  content: { role: 'user', parts: [{ text: words }] },
})

function write(journal: LiveJournal, words: string): void {
  journal.delivered(journal.send(text(words)))
}

function linesOf(history: readonly Content[]): string[] {
  return history.map(({ role, parts }) => `${role}: ${parts?.[0]?.text}`)
}

function restart(journal: LiveJournal) {
  const { beginning, givenUp } = journal.restart()
  const again = journal.unsent.map(({ sending }) =>
    sending.type === 'content' ? sending.content.parts?.[0]?.text : sending.responses[0]?.id,
  )
  return beginning.type === 'resumed'
    ? { handle: beginning.handle, again, givenUp: givenUp.length }
    : { history: linesOf(beginning.history), again, givenUp: givenUp.length }
}

test('[LC9] a message that crossed a handle on its way is sent again', () => {
  const journal = new LiveJournal()
  write(journal, 'one')
  journal.checkpoint('h1')
  expect(restart(journal)).toEqual({ handle: 'h1', again: ['one'], givenUp: 0 })
})

test('[LC9] a message written into the model’s speech is not taken for heard by that speech', () => {
  const journal = new LiveJournal()
  write(journal, 'one')
  journal.say('Well')
  write(journal, 'two')
  journal.say(', one.')
  journal.endTurn()
  journal.checkpoint('h1')
  expect(restart(journal)).toEqual({ handle: 'h1', again: ['two'], givenUp: 0 })
})

test('[LC9] nor is it answered by the turn that it interrupts', () => {
  const journal = new LiveJournal()
  journal.checkpoint('h0')
  journal.say('Well')
  write(journal, 'two')
  journal.endTurn()
  expect(restart(journal)).toEqual({ history: ['model: Well'], again: ['two'], givenUp: 0 })
})

test('[LC9] words that were spoken and understood are asked again, half-understood ones are not', () => {
  const journal = new LiveJournal()
  journal.checkpoint('h0')
  journal.hear('What is ')
  journal.hear('this?')
  expect(restart(journal).again).toEqual([])
  journal.hear('What is ')
  journal.hear('this?')
  journal.say('')
  expect(restart(journal)).toEqual({ handle: 'h0', again: ['What is this?'], givenUp: 0 })
})

test('[LC9] without any handle, only what was not answered is asked again', () => {
  const journal = new LiveJournal()
  write(journal, 'one')
  journal.say('First.')
  journal.endTurn()
  write(journal, 'two')
  journal.say('Sec')
  expect(restart(journal)).toEqual({
    history: ['user: one', 'model: First.'],
    again: ['two'],
    givenUp: 0,
  })
  // The attempt failed; the next one is the same.
  expect(restart(journal)).toMatchObject({ again: ['two'], history: { length: 2 } })
})

test('[LC9] a turn answers one message, or the results, and not what was written behind them', () => {
  const journal = new LiveJournal()
  journal.checkpoint('h0')
  write(journal, 'one')
  write(journal, 'two')
  journal.say('First.')
  journal.endTurn()
  expect(restart(journal)).toMatchObject({ again: ['two'] })
  const other = new LiveJournal()
  write(other, 'meanwhile')
  other.delivered(other.send({ type: 'results', responses: [{ id: 'c1', name: 'pay' }] }))
  other.say('Paid.')
  other.endTurn()
  expect(restart(other)).toMatchObject({ again: ['meanwhile'] })
})

test('[LC9] a message that was interrupted before its answer began is not asked again', () => {
  const journal = new LiveJournal()
  write(journal, 'one')
  write(journal, 'two')
  journal.endTurn()
  expect(restart(journal)).toMatchObject({ again: ['two'] })
})

test('[LC9] a message that was sent a second before a handle came is behind it', () => {
  let now = 0
  const journal = new LiveJournal(undefined, [], () => now)
  write(journal, 'one')
  now = 900
  write(journal, 'two')
  now = 1000
  journal.checkpoint('h1')
  expect(restart(journal)).toEqual({ handle: 'h1', again: ['two'], givenUp: 0 })
  // What waits to be sent again is behind no handle, however old it is.
  now = 5000
  journal.checkpoint('h2')
  expect(restart(journal)).toMatchObject({ handle: 'h2', again: ['two'] })
})

test('[LC12] a call that was made to another agent is not known to this connection', () => {
  const journal = new LiveJournal()
  journal.call({ id: 'c1', name: 'pay' })
  journal.noteCall({ id: 'c2', name: 'no_such_tool' })
  expect(['c1', 'c2', 'of another'].map((id) => journal.isLost(id))).toEqual([false, false, true])
  expect(new LiveJournal('a handle').isLost('of before')).toBe(false)
})

test('[LC12] what led to a call is never asked again, even if a handle from before is at hand', () => {
  const journal = new LiveJournal()
  journal.checkpoint('h0')
  write(journal, 'pay')
  journal.say('Paying.')
  journal.call({ id: 'c1', name: 'pay', args: { amount: 5 } })
  expect(restart(journal)).toEqual({
    history: ['user: pay', 'model: Paying.', 'model: [called pay({"amount":5})]'],
    again: [],
    givenUp: 0,
  })
  expect(journal.isLost('c1')).toBe(true)
})

test('[LC12] a result that was sent and not spoken about is told again', () => {
  const journal = new LiveJournal()
  write(journal, 'pay')
  journal.call({ id: 'c1', name: 'pay' })
  journal.delivered(
    journal.send({ type: 'results', responses: [{ id: 'c1', name: 'pay', response: {} }] }),
  )
  journal.say('Pa')
  expect(restart(journal)).toMatchObject({ again: ['c1'], history: { length: 2 } })
})

test('[LC17] a handle given before the model is known to have read the history is not used', () => {
  const journal = new LiveJournal()
  journal.begin([{ role: 'user', parts: [{ text: 'before' }] }])
  journal.checkpoint('too early')
  expect(restart(journal)).toMatchObject({ history: ['user: before'] })
  journal.say('Hello.')
  journal.endTurn()
  journal.checkpoint('h1')
  expect(restart(journal)).toMatchObject({ handle: 'h1' })
})

test('[LC6] a refused handle leaves the whole conversation', () => {
  const journal = new LiveJournal('from before', [{ role: 'user', parts: [{ text: 'zero' }] }])
  write(journal, 'one')
  journal.say('First.')
  journal.endTurn()
  journal.checkpoint('h1')
  expect(journal.forgetHandle()).toBe(true)
  expect(journal.forgetHandle()).toBe(false)
  expect(restart(journal)).toMatchObject({ history: ['user: zero', 'user: one', 'model: First.'] })
})

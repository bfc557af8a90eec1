import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { RepeatedText } from '../../src/modules/live/session/repeated-text.ts'

/** Gives a reply whose attempts are cut off. Returns what is streamed and what is stored. */
function repeat(attempts: readonly (readonly (readonly string[])[])[]) {
  const said = new RepeatedText()
  let streamed = ''
  let stored = ''
  for (const [index, texts] of attempts.entries()) {
    if (index > 0) said.restart()
    for (const pieces of texts) {
      for (const piece of pieces) streamed += said.takePiece(piece)
      stored += said.takeWhole(pieces.join(''))
    }
  }
  return { streamed, stored }
}

test('[LV22] a reply that starts again with the same words is shown and stored once', () => {
  const piece = fc.string({ maxLength: 3 })
  const reply = fc.array(fc.array(piece, { maxLength: 4 }), { minLength: 1, maxLength: 4 })
  const cuts = fc.array(fc.nat({ max: 20 }), { maxLength: 3 })
  fc.assert(
    fc.property(reply, cuts, (texts, lengths) => {
      const whole = texts.flat().join('')
      const attempts = lengths.map((length) => [whole.slice(0, length).split('')])
      expect(repeat([...attempts, texts])).toEqual({ streamed: whole, stored: whole })
    }),
  )
})

test.each([
  {
    name: 'other words',
    attempts: [[['Some ', 'words']], [['Some ', 'other ', 'words']]],
    shown: 'Some wordsSome other words',
  },
  {
    name: 'other words after a text',
    attempts: [[['One. ', 'Two']], [['One. '], ['Three']]],
    shown: 'One. TwoOne. Three',
  },
  {
    name: 'other words twice',
    attempts: [[['A b']], [['A c']], [['A c', ' d']]],
    shown: 'A bA c d',
  },
  { name: 'fewer words', attempts: [[['One. Two.']], [['One.']]], shown: 'One. Two.' },
])('[LV22] a reply that starts again with $name', ({ attempts, shown }) => {
  expect(repeat(attempts)).toEqual({ streamed: shown, stored: shown })
})

test('[LV22] a later reply with the same words is not a repetition', () => {
  const said = new RepeatedText()
  expect(said.takeWhole('Yes.')).toBe('Yes.')
  said.reset()
  expect(said.takePiece('Yes.')).toBe('Yes.')
  expect(said.takeWhole('Yes.')).toBe('Yes.')
})

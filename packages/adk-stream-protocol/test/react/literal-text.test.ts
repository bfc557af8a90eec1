import { expect, test } from 'vitest'

import { findLookAlikes, toLiteral } from '../../src/react/reading/shown-text.ts'

test.each([
  { text: '\u202Eecila', shown: '⟨U+202E⟩ecila', what: 'a right-to-left override' },
  { text: 'ali\u200Bce', shown: 'ali⟨U+200B⟩ce', what: 'a zero-width space' },
  { text: 'a\u2066b\u2069', shown: 'a⟨U+2066⟩b⟨U+2069⟩', what: 'isolates' },
  { text: 'a\u0000b\u001B[2J', shown: 'a⟨U+0000⟩b⟨U+001B⟩[2J', what: 'control characters' },
  { text: 'al\u200Dice', shown: 'al⟨U+200D⟩ice', what: 'a joiner between Latin letters' },
  { text: 'soft\u00ADhyphen', shown: 'soft⟨U+00AD⟩hyphen', what: 'a soft hyphen' },
  { text: 'alice\u3164', shown: 'alice⟨U+3164⟩', what: 'a letter that is drawn as nothing' },
  { text: 'a\u{E0041}', shown: 'a⟨U+E0041⟩', what: 'a tag' },
  { text: 'a\uD800', shown: 'a⟨U+D800⟩', what: 'half a surrogate pair' },
  { text: 'two\nlines\there', shown: 'two\nlines\there', what: 'line breaks and tabs as they are' },
  { text: '花子さん', shown: '花子さん', what: 'Japanese as it is' },
  { text: 'می\u200Cخواهم', shown: 'می\u200Cخواهم', what: 'a joiner that Persian needs' },
  { text: '👩\u200D🔧❤\uFE0F', shown: '👩\u200D🔧❤\uFE0F', what: 'composed emoji' },
])('[RE160] shows $what', ({ text, shown }) => {
  expect(toLiteral(text)).toBe(shown)
})

test.each([
  { text: 'pаypal to Alice', words: ['pаypal'] },
  { text: 'Αlice', words: ['Αlice'] },
  { text: '𝐀lice', words: ['𝐀lice'] },
  { text: 'Иван Alice', words: [] },
  { text: 'Alice さん、Tシャツ', words: [] },
  { text: 'Zoë Ångström', words: [] },
])('[RE160] reports words of "$text" that look like others', ({ text, words }) => {
  expect(findLookAlikes(text)).toEqual(words)
})

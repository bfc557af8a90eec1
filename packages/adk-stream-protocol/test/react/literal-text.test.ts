import { expect, test } from 'vitest'

import { findLookAlikes, toLiteral } from '../../src/shared/literal-text.ts'

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
  { text: 'two\nlines\r\nor\rthree', shown: 'two⏎lines⏎or⏎three', what: 'line breaks' },
  { text: 'a\u2028b\u2029c\u0085d', shown: 'a⟨U+2028⟩b⟨U+2029⟩c⟨U+0085⟩d', what: 'separators' },
  { text: 'a\tb', shown: 'a⇥b', what: 'a tab' },
  { text: 'a  b\u00A0 c', shown: 'a␣␣b␣␣c', what: 'runs of spaces' },
  { text: ' a ', shown: '␣a␣', what: 'spaces at the start and the end' },
  { text: 'a \n b', shown: 'a␣⏎␣b', what: 'spaces next to a line break' },
  { text: `a${' '.repeat(300)}b\n${'\n'.repeat(8)}c`, shown: 'a␣×300b⏎×9c', what: 'long runs' },
  { text: '\u200B'.repeat(9), shown: '⟨U+200B⟩×9', what: 'repeated hidden characters' },
  { text: '   ', shown: '␣␣␣', what: 'blanks' },
  { text: '$1\u00A0000,00', shown: '$1\u00A0000,00', what: 'one space as it is' },
  {
    text: `e${'\u0301'.repeat(7)}`,
    shown: `e${'\u0301'.repeat(4)}⟨U+0301⟩×3`,
    what: 'a pile of accents',
  },
  { text: 'pаypal', shown: 'pа⟨U+0430⟩ypal', what: 'look-alike letters' },
  { text: 'Send ⟨U+202E⟩⏎', shown: 'Send ⟨U+202E⟩⏎', what: 'literal text as it is' },
  { text: '花子さん', shown: '花子さん', what: 'Japanese as it is' },
  { text: 'می\u200Cخواهم', shown: 'می\u200Cخواهم', what: 'a joiner that Persian needs' },
  { text: '👩\u200D🔧❤\uFE0F', shown: '👩\u200D🔧❤\uFE0F', what: 'composed emoji' },
])('[RE160] shows $what', ({ text, shown }) => {
  expect(toLiteral(text)).toBe(shown)
})

test.each([
  { text: 'pаypal to Alice', words: ['pаypal'], letters: ['а'] },
  { text: 'Αlice', words: ['Αlice'], letters: ['Α'] },
  { text: '𝐀lice', words: ['𝐀lice'], letters: ['𝐀'] },
  { text: 'Send to аре', words: ['аре'], letters: ['а', 'р', 'е'] },
  { text: 'Иван Alice', words: [], letters: [] },
  { text: 'Alice さん、Tシャツ', words: [], letters: [] },
  { text: 'Zoë Ångström', words: [], letters: [] },
])('[RE160] reports words of "$text" that look like others', ({ text, words, letters }) => {
  const found = findLookAlikes(text)
  expect(found.map(({ word }) => word)).toEqual(words)
  expect(found.flatMap((each) => each.letters.map(({ letter }) => letter))).toEqual(letters)
})

test('[RE160] a text with a frame of its own keeps its lines and spaces, and nothing else', () => {
  const text = 'one\n  two\t\u202Ethree '
  expect(toLiteral(text, { multiline: true })).toBe('one\n  two\t⟨U+202E⟩three ')
})

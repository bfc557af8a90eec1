import { expect, test } from 'vitest'

import { parseNumber, toFields } from '../../src/react/reading/form-fields.ts'
import { readFields } from '../../src/react/reading/read-fields.ts'
import { diffLines } from '../../src/react/reading/preview.ts'

test.each([
  ['50', 'en', 50],
  ['５０', 'ja', 50],
  ['１，２３４．５', 'ja', 1234.5],
  ['1,000', 'en', 1000],
  ['12,34', 'en', undefined],
  ['1,0000', 'en', undefined],
  ['−5', 'en', -5],
  ['1.000,5', 'de', 1000.5],
  ['0,1', 'de', 0.1],
  ['.5', 'en', 0.5],
  ['1e3', 'en', 1000],
  ['0x10', 'en', undefined],
  ['Infinity', 'en', undefined],
  ['', 'en', undefined],
])('[RE367] "%s" in %s is the number %s', (text, locale, value) => {
  expect(parseNumber(text, locale)).toBe(value)
})

test.each([0.1, 12.345, 1e21, -0.000_001, 1234567.89])(
  '[RE367] the number %s survives an edit that does not change it, in every language',
  (value) => {
    for (const locale of ['en', 'ja', 'de', 'fr', 'ar'])
      expect(readFields(toFields({ value }, undefined, locale), locale)).toEqual({
        state: 'valid',
        args: { value },
      })
  },
)

test('[RE367] arguments without a schema, with nulls and with nested values survive an edit', () => {
  const args = { text: '', none: null, list: [1, { a: 'b' }], flag: true, day: '2026-11-16' }
  expect(readFields(toFields(args))).toEqual({ state: 'valid', args })
  const schema = {
    properties: {
      none: { anyOf: [{ type: 'object' }, { type: 'null' }] },
      day: { type: 'string', format: 'date' },
      extra: { type: 'integer' },
    },
  }
  expect(readFields(toFields({ day: '2026-11-16' }, schema))).toEqual({
    state: 'valid',
    args: { day: '2026-11-16' },
  })
})

test('[RE360] a changed text is compared line by line', () => {
  expect(diffLines('a\nb\nc', 'a\nx\nc\nd').map(({ type, text }) => `${type} ${text}`)).toEqual([
    'same a',
    'removed b',
    'added x',
    'same c',
    'added d',
  ])
  const long = Array.from({ length: 600 }, (_, index) => String(index)).join('\n')
  expect(diffLines(long, 'x')).toHaveLength(601)
})

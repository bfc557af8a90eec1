import { expect, test } from 'vitest'

import { type Field, readFields, toFields } from '../src/page/chat/edit-arguments.ts'

test('[DM35] arguments come back from the form as they went in', () => {
  const args = {
    amount: 50,
    recipient: '花子',
    urgent: false,
    tags: ['a', 1],
    note: null,
    text: '7',
  }
  expect(readFields(toFields(args))).toEqual({ state: 'valid', args })
})

test.each<[Field['kind'], string, unknown]>([
  ['number', '40.5', 40.5],
  ['number', ' 1e3 ', 1000],
  ['text', '40.5', '40.5'],
  ['json', '{"a": [1]}', { a: [1] }],
])('[DM35] what is typed into a field of kind %s: %s', (kind, value, expected) => {
  const field = { name: 'changed', kind, value } as Field
  expect(readFields([field])).toEqual({ state: 'valid', args: { changed: expected } })
})

test.each<[Field['kind'], string]>([
  ['number', ''],
  ['number', 'forty'],
  ['number', 'Infinity'],
  ['json', '{a: 1}'],
])('[DM35] a field of kind %s cannot hold %s', (kind, value) => {
  const field = { name: 'changed', kind, value } as Field
  expect(readFields([{ name: 'fine', kind: 'text', value: '' }, field])).toEqual({
    state: 'invalid',
    field,
  })
})

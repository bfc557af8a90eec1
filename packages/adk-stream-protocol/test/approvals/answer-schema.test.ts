import { expect, test } from 'vitest'

import { findAnswerFault, readAnswerSchema } from '../../src/approvals/answer-schema.ts'

const TRIP = {
  type: 'object',
  properties: {
    city: { type: 'string', minLength: 2 },
    nights: { type: 'integer', minimum: 1, default: 2 },
    start: { type: 'string', format: 'date' },
    meal: { type: 'string', enum: ['none', 'breakfast'] },
    tags: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    contact: { type: 'object', properties: { email: { type: 'string', format: 'email' } } },
  },
  required: ['city', 'nights'],
}
const TRIP_ANSWER = { city: 'Nara', nights: 3 }

const ANSWERS: readonly (readonly [schema: object, answer: unknown, fault: string | undefined])[] =
  [
    [{}, 'anything', undefined],
    [{}, { deep: [1, null] }, undefined],
    [TRIP, TRIP_ANSWER, undefined],
    [TRIP, { ...TRIP_ANSWER, city: 'N' }, '`city`'],
    [TRIP, { ...TRIP_ANSWER, nights: 1.5 }, '`nights`'],
    [TRIP, { ...TRIP_ANSWER, nights: 0 }, '`nights`'],
    [TRIP, { ...TRIP_ANSWER, start: 'soon' }, '`start`'],
    [TRIP, { ...TRIP_ANSWER, meal: 'lunch' }, '`meal`'],
    [TRIP, { ...TRIP_ANSWER, tags: ['a', 'b', 'c'] }, '`tags`'],
    [TRIP, { ...TRIP_ANSWER, contact: { email: 'x' } }, '`contact.email`'],
    // A default is a proposal, not an answer.
    [TRIP, { city: 'Nara' }, '`nights`'],
    [TRIP, 'Nara', 'The answer'],
    [{ type: 'STRING', nullable: true }, null, undefined],
    [{ properties: { a: { type: 'string' } }, required: ['a'] }, {}, '`a`'],
    [{ oneOf: [{ const: 'a', title: 'A' }, { const: 'b' }] }, 'c', 'The answer'],
    [{}, JSON.parse('{"a":[{"__proto__":{"admin":true}}]}'), '__proto__'],
  ]

test.each(ANSWERS)('[AP421] %j, answered with %j: %s', (schema, answer, fault) => {
  const read = readAnswerSchema(schema)
  if (!('schema' in read)) throw new Error(read.fault)
  const found = findAnswerFault(read.schema, answer)
  expect(found ?? 'fits').toContain(fault ?? 'fits')
})

let deep: object = { type: 'string' }
for (let level = 0; level < 20; level += 1) deep = { type: 'array', items: deep }

test.each([
  ['a remote reference', { $ref: 'https://example.com/schema.json' }, '$ref'],
  ['a local reference', { properties: { a: { $ref: '#/$defs/a' } } }, '$ref'],
  ['a condition', { if: {} }, '`if`'],
  ['patternProperties', { type: 'object', patternProperties: { '(a+)+': {} } }, 'patternProp'],
  ['20 levels', deep, '16 levels'],
  ['20,000 characters', { description: 'x'.repeat(20_000) }, '16000 characters'],
  ['an unknown required field', { properties: {}, required: ['a'] }, '`a`'],
  ['an inherited name', { properties: { constructor: {} } }, '`constructor`'],
  ['an unknown type', { type: 'frob' }, 'not valid'],
  ['no object', 'string', 'must be an object'],
])('[AP422] a schema with %s is not valid', (_name, schema, fault) => {
  const read = readAnswerSchema(schema)
  expect('fault' in read && read.fault).toContain(fault)
})

test('[AP422] a pattern is ignored, so that no regular expression of a model runs', () => {
  const read = readAnswerSchema({ type: 'string', pattern: '^(a+)+$' })
  expect(read).toEqual({ schema: { type: 'string' } })
})

test('[AP422] a check that would take too many steps is rejected', () => {
  const branches = Array.from({ length: 500 }, () => ({ type: 'null' }))
  const read = readAnswerSchema({ type: 'array', items: { anyOf: branches } })
  if (!('schema' in read)) throw new Error(read.fault)
  const answer = Array.from({ length: 5_000 }, () => 1)
  expect(findAnswerFault(read.schema, answer)).toContain('too many values')
})

test.each([
  [
    ['All', 'None'],
    ['All', 'None'],
  ],
  [['All'], undefined],
  [['All', 2], undefined],
])('[AP650] with the names %j of its options, a schema keeps %j', (enumNames, kept) => {
  const read = readAnswerSchema({ type: 'string', enum: ['all', 'none'], enumNames })
  const schema = 'schema' in read ? read.schema : {}
  expect(schema['enumNames']).toEqual(kept)
  expect(findAnswerFault(schema, 'all')).toBeUndefined()
  expect(findAnswerFault(schema, 'All')).toBeDefined()
})

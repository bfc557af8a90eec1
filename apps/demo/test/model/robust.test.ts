import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { shareOf, times } from '../../../../test/support/long-run.ts'
import { naturalPieces } from '../../src/model/replies/render.ts'
import type { FunctionDeclaration } from 'gemini-emulator'
import { respond, declare, demoTools } from './prompt.ts'

const fragments = fc.constantFrom(
  ...'send pay $30 12.50€ 3万円 五十ドル to Alice Bob and , . ? then for lunch each 花子さん に を と へ 送金して その後 天気 weather in Tokyo 東京 の track トラック 2 9 where am I 現在地 lookup_order {"id":5} id=x draw 絵を描いて my name is __proto__ constructor'.split(
    ' ',
  ),
)
const request = fc.oneof(
  fc.array(fragments, { maxLength: 14 }).map((words) => words.join(' ')),
  fc.array(fragments, { maxLength: 14 }).map((words) => words.join('')),
  fc.string({ unit: 'grapheme', maxLength: 80 }),
)

const property = fc.constantFrom<Record<string, unknown>>(
  { type: 'string' },
  { type: 'number', exclusiveMinimum: 0 },
  { type: 'integer', minimum: 1, maximum: 2 },
  { type: 'boolean' },
  { type: 'string', enum: ['USD', 'JPY'] },
  { type: 'string', maxLength: 3 },
  { type: 'array', items: { type: 'string' } },
  { anyOf: [{ type: 'null' }, { type: 'number' }] },
)
const schema = fc
  .dictionary(
    fc.constantFrom(
      'amount',
      'recipient',
      'currency',
      'description',
      'location',
      'track',
      'id',
      '__proto__',
    ),
    property,
  )
  .chain((properties) =>
    fc
      .subarray(Object.keys(properties))
      .map((required) => ({ type: 'object' as const, properties, required })),
  )
const declared = fc
  .uniqueArray(
    fc.constantFrom(
      'get_weather',
      'process_payment',
      'get_location',
      'change_bgm',
      'lookup_order',
      'constructor',
      '__proto__',
    ),
  )
  .chain((names) =>
    fc.tuple(
      ...names.map((name) =>
        schema.map((parametersJsonSchema) => ({ name, parametersJsonSchema })),
      ),
    ),
  )

test('[ED11] only declared functions are called, for any text', () => {
  fc.assert(
    fc.property(request, fc.subarray([...demoTools]), (text, functions) => {
      const names = functions.map(({ name }) => name)
      for (const { name } of respond(text, { functions }).calls) expect(names).toContain(name)
    }),
    { numRuns: times(10, 500) },
  )
})

test('[ED12] the arguments match the schema, for any declaration', () => {
  fc.assert(
    fc.property(request, declared, (text, functions) => {
      for (const { name, args } of respond(text, { functions }).calls) {
        const parameters = functions.find((each) => each.name === name)?.parametersJsonSchema
        expect(z.fromJSONSchema(parameters ?? true).safeParse(args)).toMatchObject({
          success: true,
        })
      }
    }),
    { numRuns: times(10, 500) },
  )
})

const LONE_SURROGATE = /\p{Surrogate}/u

test('[ED31] the joined pieces of any text are the text, and no character is split', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const pieces = naturalPieces(text)
      expect(pieces.join('')).toBe(text)
      expect(pieces).not.toContain('')
      for (const piece of pieces) expect(piece).not.toMatch(LONE_SURROGATE)
    }),
  )
})

const HOSTILE = [
  ...'aA 1一花に-\n\\'.split(''),
  '{"a":',
  "a='",
  'a=「',
  '1,',
  'a.',
  '$1 to Bob and ',
  '$1 for x ',
  'Bobに1ドル、',
  '東京の天気',
  'さんと',
  'in Ab, ',
  'my name is ',
  'の絵',
  'lookup_order ',
]

// A quadratic parser needs minutes for this size. CPU time does not depend on other processes.
const SLOWEST_MS = 5_000

const STARTS = ['pay ', '送金して ', 'weather ']

test.each(HOSTILE)('[ED32] reads 100 kB of %j in linear time', (unit) => {
  const functions = [...demoTools, declare('lookup_order', { id: { type: 'INTEGER' } }, ['id'])]
  for (const start of shareOf(STARTS, { group: HOSTILE.indexOf(unit), groups: STARTS.length })) {
    const text = start + unit.repeat(100_000 / unit.length)
    const before = process.cpuUsage()
    respond(text, { functions })
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1_000).toBeLessThan(SLOWEST_MS)
  }
})

test('[ED32] the reply stays short, however long the text', () => {
  expect(respond('x '.repeat(50_000)).text.length).toBeLessThan(500)
})

test('[ED33] treats names of prototype properties like other names', () => {
  const functions: FunctionDeclaration[] = [
    declare('__proto__', { a: { type: 'STRING' } }, []),
    {
      name: 'echo',
      parametersJsonSchema: JSON.parse(
        '{"type":"object","properties":{"__proto__":{"type":"string"}}}',
      ) as unknown,
    },
  ]
  expect(respond('__proto__ a=1', { functions }).calls).toEqual([
    { name: '__proto__', args: { a: '1' } },
  ])
  const [call] = respond('echo {"__proto__": "x", "constructor": 1}', { functions }).calls
  expect(Object.entries(call?.args ?? {})).toEqual([['__proto__', 'x']])
  expect(respond('Send $5 to __proto__').calls[0]?.args).toMatchObject({ recipient: '__proto__' })
  expect(respond('constructor toString valueOf').calls).toEqual([])
  expect(Object.hasOwn(Object.prototype, 'a')).toBe(false)
})

import { expect, test } from 'vitest'

import { firstOf, scriptResponder, startEmulator, type Action } from '../src/index.ts'
import { parseScript } from '../src/responders/script-responder.ts'
import { ask, calls, connect, MODEL, rejection, results, user } from './support/rest-client.ts'

test.each<readonly [string, Action]>([
  ['[[say Hello]]', { type: 'say', text: 'Hello' }],
  ['[[say こんにちは [世界] ]]', { type: 'say', text: 'こんにちは [世界]' }],
  ['[[say [sic]]]', { type: 'say', text: '[sic]' }],
  ['[[think a\nb]]', { type: 'think', text: 'a\nb' }],
  ['[[call pay {"amount": 5}]]', { type: 'call', name: 'pay', args: { amount: 5 } }],
  ['[[call pay]]', { type: 'call', name: 'pay', args: {} }],
  ['[[call-separate pay {}]]', { type: 'call', name: 'pay', args: {}, separate: true }],
  [
    '[[code print("]") => ]]]',
    { type: 'code', language: 'PYTHON', code: 'print("]")', outcome: 'OUTCOME_OK', output: ']' },
  ],
  [
    '[[ground https://example.com/a A title]]',
    { type: 'ground', sources: [{ uri: 'https://example.com/a', title: 'A title' }] },
  ],
  ['[[pause 50]]', { type: 'pause', ms: 50 }],
  ['[[pace 0]]', { type: 'pace', ms: 0 }],
  ['[[wait gate-1]]', { type: 'wait', gate: 'gate-1' }],
  ['[[finish MAX_TOKENS]]', { type: 'finish', reason: 'MAX_TOKENS' }],
  ['[[block SAFETY]]', { type: 'block', reason: 'SAFETY' }],
  ['[[fail 500]]', { type: 'fail', status: 500, message: '' }],
  [
    '[[fail 429 retry=2.5 Too fast]]',
    { type: 'fail', status: 429, message: 'Too fast', retryAfterSeconds: 2.5 },
  ],
  ['[[drop]]', { type: 'drop' }],
  ['[[close 1011 Internal error]]', { type: 'close', code: 1011, reason: 'Internal error' }],
  ['[[go-away 100]]', { type: 'go-away', timeLeftMs: 100 }],
  ['[[cancel]]', { type: 'cancel' }],
  ['[[raw {"a": [[1]]}]]', { type: 'raw', message: { a: [[1]] } }],
])('[EM41] %j becomes one action', (script, action) => {
  expect(parseScript(script)).toEqual([[action]])
})

test.each(['Hello', 'a [ b ] c', 'matrix [[1, 2], [3, 4]]', 'see [[Wiki page]]', ']] [['])(
  '[EM41] %j is not a script',
  (text) => {
    expect(parseScript(text)).toBeUndefined()
  },
)

test('[EM41] text between directives is ignored', () => {
  expect(parseScript('Please [[say a]] and then, 次に, [[say b]]!')).toEqual([
    [
      { type: 'say', text: 'a' },
      { type: 'say', text: 'b' },
    ],
  ])
})

test('[EM41] a text without directives goes to the next responder', async () => {
  await using emulator = await startEmulator({
    respond: firstOf(scriptResponder, () => [{ type: 'say', text: 'the other responder' }]),
  })
  expect((await ask(emulator, 'Hello')).text).toBe('the other responder')
  expect((await ask(emulator, '[[say the script]]')).text).toBe('the script')
})

test('[EM41] `raw` is sent unchanged', async () => {
  await using emulator = await startEmulator()
  const response = await ask(
    emulator,
    '[[raw {"candidates": [{"finishReason": "OTHER", "index": 0}], "modelVersion": "x"}]]',
  )
  expect(response.modelVersion).toBe('x')
  expect(response.candidates).toEqual([{ finishReason: 'OTHER', index: 0 }])
})

test.each([
  ['{"grid": [[1, 2], [3]]}', { grid: [[1, 2], [3]] }],
  ['{"deep": [[[[]]]]}', { deep: [[[[]]]] }],
  ['{"text": "a ]] b } \\" c"}', { text: 'a ]] b } " c' }],
  ['{"text": "[[say no]]"}', { text: '[[say no]]' }],
  ['{"city": "東京", "nested": {"a": {}}}', { city: '東京', nested: { a: {} } }],
])('[EM42] the brackets in %s belong to the JSON', async (json, args) => {
  await using emulator = await startEmulator()
  const { functionCalls } = await ask(emulator, `[[call tool ${json}]] [[call other]]`)
  expect(functionCalls).toEqual([
    { name: 'tool', args },
    { name: 'other', args: {} },
  ])
})

test('[EM43] `then` separates the steps of a script', async () => {
  await using emulator = await startEmulator()
  const { models } = connect(emulator)
  const script = user('[[call a]] [[then]] [[say more]] [[call b]] [[then]] [[say done]]')
  const generate = async (...after: object[]) =>
    models.generateContent({ model: MODEL, contents: [script, ...after] })
  expect((await generate()).functionCalls?.[0]?.name).toBe('a')
  const second = await generate(calls('a'), results('a'))
  expect(second.candidates?.[0]?.content?.parts).toEqual([
    { text: 'more' },
    { functionCall: { name: 'b', args: {} } },
  ])
  expect((await generate(calls('a'), results('a'), calls('b'), results('b'))).text).toBe('done')
})

test('[EM43] a new user message starts a new script', async () => {
  await using emulator = await startEmulator()
  const contents = [
    user('[[call a]] [[then]] [[say old]]'),
    calls('a'),
    results('a'),
    { role: 'model', parts: [{ text: 'old' }] },
    user('[[say new]]'),
  ]
  const response = await connect(emulator).models.generateContent({ model: MODEL, contents })
  expect(response.text).toBe('new')
})

test('[EM44] a script without a further step reports the results', async () => {
  await using emulator = await startEmulator()
  const contents = [user('[[call a]] [[call b]]'), calls('a', 'b'), results('a', 'b')]
  const response = await connect(emulator).models.generateContent({ model: MODEL, contents })
  expect(response.text).toBe('a -> {"ok":true}; b -> {"ok":true}')
})

test.each([
  ['[[say Hello', 'it is not closed; write [[say Hello]]'],
  ['[[say]]', 'write [[say Hello]]'],
  ['[[sya Hello]]', 'unknown directive; use one of say, think, call,'],
  ['[[call pay {"a": 1]]', 'the JSON is not closed; write [[call tool {"json": 1}]]'],
  ['[[call pay {a: 1}]]', 'invalid JSON'],
  ['[[call pay [1]]]', 'write [[call tool {"json": 1}]]'],
  ['[[call {"a": 1}]]', 'the name is missing; write [[call tool {"json": 1}]]'],
  ['[[call pay {} {}]]', 'it is not closed; write [[call tool {"json": 1}]]'],
  ['[[pause soon]]', 'write [[pause 50]]'],
  ['[[fail please]]', 'write [[fail 503 message]]'],
  ['[[image transparent]]', 'write [[image red]]'],
  ['[[constructor x]]', 'unknown directive'],
  ['[[then what]]', 'it is not closed; write [[then]]'],
])('[EM45] %j is rejected with %j', async (script, message) => {
  await using emulator = await startEmulator()
  expect(await rejection(emulator, { contents: [user(`ok ${script}`)] })).toContain(message)
})

test('[EM45] the error shows the position of the mistake', async () => {
  await using emulator = await startEmulator()
  const message = await rejection(emulator, {
    contents: [user('[[say fine]]\nand [[pause soon]] ok')],
  })
  expect(message).toBe(
    'gemini-emulator: invalid script at line 2, column 5: write [[pause 50]]\nand [[pause soon]] ok\n    ^',
  )
})

test('[EM50] the first responder that returns actions replies', async () => {
  await using emulator = await startEmulator({
    respond: firstOf(
      () => undefined,
      async () => undefined,
      () => [{ type: 'say', text: 'third' }],
      () => [{ type: 'say', text: 'fourth' }],
    ),
  })
  expect((await ask(emulator, 'Hello')).text).toBe('third')
})

test('[EM220] by default, the reply to a prompt without a script repeats it and explains scripts', async () => {
  await using emulator = await startEmulator()
  expect((await ask(emulator, 'Hello')).text).toBe(
    'The emulator received: Hello\nTo script the reply, send [[say Hello.]] or load a scenario.',
  )
  expect((await ask(emulator, 'x'.repeat(1_000))).text).toContain(`${'x'.repeat(200)}…`)
})

import { writeFile } from 'node:fs/promises'

import { expect, test } from 'vitest'

import { temporaryDirectory } from '../../../test/support/temporary-directory.ts'
import {
  EmulatorError,
  loadScenario,
  scenarioResponder,
  startEmulator,
  type Action,
  type Scenario,
} from '../src/index.ts'
import {
  ask,
  calls,
  connect,
  MODEL,
  partsOf,
  results,
  stream,
  user,
} from './support/rest-client.ts'

const YAML = `
exchanges:
  - when: Hello
    do: [Hi there.]
  - when: /天気/
    do:
      - say: 見てみます。
      - { call: get_weather, args: { location: 東京 } }
  - when: { toolResult: get_weather }
    do:
      - { say: 晴れです。, pieces: [晴れ, です。] }
      - finish: MAX_TOKENS
  - when: /^FAIL$/i
    do: [{ fail: 429, message: later, retryAfterSeconds: 3 }]
`

type Step = Scenario['exchanges'][number]['do'][number]

/** Writes a file and removes it after `use`. */
async function withFile<T>(name: string, text: string, use: (path: string) => Promise<T>) {
  await using folder = await temporaryDirectory()
  await writeFile(folder.file(name), text)
  return await use(folder.file(name))
}

test('[EM47] an exchange is chosen by text, by pattern and by tool result', async () => {
  const scenario = await withFile('weather.yaml', YAML, loadScenario)
  await using emulator = await startEmulator({ respond: scenarioResponder(scenario) })
  expect((await ask(emulator, '  hello ')).text).toBe('Hi there.')
  const asked = await ask(emulator, '東京の天気は？')
  expect(asked.text).toBe('見てみます。')
  expect(asked.functionCalls).toEqual([{ name: 'get_weather', args: { location: '東京' } }])
  const reply = await connect(emulator).models.generateContent({
    model: MODEL,
    contents: [user('天気'), calls('get_weather'), results('get_weather')],
  })
  expect(reply.text).toBe('晴れです。')
  expect(reply.candidates?.[0]?.finishReason).toBe('MAX_TOKENS')
  await expect(ask(emulator, 'fail')).rejects.toMatchObject({ status: 429 })
  await expect(ask(emulator, 'hello again')).rejects.toThrow('no responder replied to this prompt')
})

test.each([
  [{ error: 'The person denied this call.', status: 'denied' }, 'I did not pay.'],
  [{ error: '' }, 'I did not pay.'],
  [{ paid: 30 }, 'I paid.'],
  [{}, 'I paid.'],
])('[EM47] a result with an error can have its own exchange: %j', async (response, text) => {
  await using emulator = await startEmulator({
    respond: scenarioResponder({
      exchanges: [
        { when: { toolError: 'refund' }, do: ['I did not refund.'] },
        { when: { toolError: 'pay' }, do: ['I did not pay.'] },
        { when: { toolResult: 'pay' }, do: ['I paid.'] },
      ],
    }),
  })
  const result = { role: 'user', parts: [{ functionResponse: { name: 'pay', response } }] }
  const reply = await connect(emulator).models.generateContent({
    model: MODEL,
    contents: [user('Pay.'), calls('pay'), result],
  })
  expect(reply.text).toBe(text)
})

test('[EM47] the first matching exchange is used, however often its pattern has matched', async () => {
  await using emulator = await startEmulator({
    respond: scenarioResponder({
      exchanges: [
        { when: /o/g, do: ['first'] },
        { when: 'no', do: ['second'] },
      ],
    }),
  })
  expect((await ask(emulator, 'no')).text).toBe('first')
  expect((await ask(emulator, 'no')).text).toBe('first')
})

test.each<readonly [Step, Action]>([
  ['Hello', { type: 'say', text: 'Hello' }],
  [
    { say: 'ab', pieces: ['a', 'b'] },
    { type: 'say', text: 'ab', pieces: ['a', 'b'] },
  ],
  [{ think: 'hm' }, { type: 'think', text: 'hm' }],
  [
    { call: 'pay', id: 'c1', separate: true },
    { type: 'call', name: 'pay', args: {}, id: 'c1', separate: true },
  ],
  [
    { image: 'AAAA', mimeType: 'image/webp' },
    { type: 'image', mimeType: 'image/webp', data: 'AAAA' },
  ],
  [
    { code: '1+1', output: '2' },
    { type: 'code', code: '1+1', output: '2', outcome: 'OUTCOME_OK', language: 'PYTHON' },
  ],
  [
    { ground: [{ uri: 'https://example.com', title: 'E' }] },
    { type: 'ground', sources: [{ uri: 'https://example.com', title: 'E' }] },
  ],
  [{ pause: 1 }, { type: 'pause', ms: 1 }],
  [{ pace: 2 }, { type: 'pace', ms: 2 }],
  [{ wait: 'gate' }, { type: 'wait', gate: 'gate' }],
  [{ finish: 'SAFETY' }, { type: 'finish', reason: 'SAFETY' }],
  [{ block: 'SAFETY' }, { type: 'block', reason: 'SAFETY' }],
  [{ fail: 503 }, { type: 'fail', status: 503, message: '' }],
  [{ drop: true }, { type: 'drop' }],
  [
    { close: 1011, reason: 'x' },
    { type: 'close', code: 1011, reason: 'x' },
  ],
  [{ 'go-away': 100 }, { type: 'go-away', timeLeftMs: 100 }],
  [{ cancel: true }, { type: 'cancel' }],
  [{ raw: { any: 1 } }, { type: 'raw', message: { any: 1 } }],
])('[EM47] the step %j becomes one action', async (step, action) => {
  const respond = scenarioResponder({ exchanges: [{ when: 'x', do: [step] }] })
  const prompt = { mode: 'rest', model: MODEL, systemInstruction: '', functions: [] } as const
  expect(await respond({ ...prompt, contents: [user('x')], includeThoughts: false })).toEqual([
    action,
  ])
})

test('[EM47] `pieces` sets the pieces of a streamed text', async () => {
  await using emulator = await startEmulator({
    respond: scenarioResponder({
      exchanges: [{ when: 'x', do: [{ say: 'abc', pieces: ['ab', 'c'] }] }],
    }),
  })
  expect(partsOf(await stream(emulator, 'x')).map((part) => part.text)).toEqual(['ab', 'c'])
})

test.each([
  [{}, 'exchanges'],
  [{ exchanges: [{ when: 'x' }] }, 'exchanges[0].do'],
  [{ exchanges: [{ when: 'x', do: [] }] }, 'do must list at least one step'],
  [{ exchanges: [{ when: 5, do: ['x'] }] }, 'when must be a text, a /regular expression/'],
  [{ exchanges: [{ when: '/(/', do: ['x'] }] }, 'Invalid regular expression'],
  [{ exchanges: [{ when: 'x', do: [{ sya: 'x' }] }] }, 'unknown step sya; use one of say,'],
  [{ exchanges: [{ when: 'x', do: [{ say: 5 }] }] }, 'exchanges[0].do[0].say'],
  [{ exchanges: [{ when: 'x', do: [{ say: 'x', colour: 1 }] }] }, 'Unrecognized key: "colour"'],
  [{ exchanges: [{ when: 'x', do: [{ image: 'clear' }] }] }, 'image must be a colour'],
  [{ exchanges: [{ when: 'x', do: [7] }] }, 'a step must be a text or an object'],
  [{ exchanges: [{ wehn: 'x', do: ['x'] }] }, 'Unrecognized key: "wehn"'],
])('[EM48] %j is rejected with %j', (scenario, message) => {
  const create = () => scenarioResponder(scenario as unknown as Scenario)
  expect(create).toThrow(EmulatorError)
  expect(create).toThrow(message)
})

test('[EM49] a scenario is read from JSON', async () => {
  const json = JSON.stringify({ exchanges: [{ when: '/./', do: ['from JSON'] }] })
  const scenario = await withFile('s.json', json, loadScenario)
  await using emulator = await startEmulator({ respond: scenarioResponder(scenario) })
  expect((await ask(emulator, 'x')).text).toBe('from JSON')
})

test('[EM49] the error for an unreadable or invalid file has its name', async () => {
  await expect(loadScenario('/no/such/file.yaml')).rejects.toMatchObject({
    code: 'unreadable-scenario',
    message: expect.stringContaining('/no/such/file.yaml') as string,
  })
  await expect(withFile('s.yaml', 'a: [', loadScenario)).rejects.toMatchObject({
    code: 'unreadable-scenario',
  })
  await expect(withFile('s.yaml', 'exchange: []', loadScenario)).rejects.toMatchObject({
    code: 'bad-scenario',
    message: expect.stringContaining('s.yaml') as string,
  })
})

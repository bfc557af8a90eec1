import { ApiError } from '@google/genai'
import { expect, test } from 'vitest'

import { startEmulator, type Emulator } from '../src/index.ts'
import { ask, connect, MODEL, post, stream, user } from './support/rest-client.ts'

interface ErrorBody {
  readonly error: {
    readonly code: number
    readonly message: string
    readonly status: string
    readonly details?: readonly Readonly<Record<string, unknown>>[]
  }
}

/** Returns the error body, which the SDK puts into the message of its ApiError. */
async function readErrorBody(request: Promise<unknown>): Promise<ErrorBody> {
  const error: unknown = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof ApiError)) throw new Error(`expected an ApiError, got ${String(error)}`)
  const outer = JSON.parse(error.message) as ErrorBody
  expect(error.status).toBe(outer.error.code)
  // For a streaming call, the SDK puts the whole body into the message of another error.
  return outer.error.message.startsWith('{')
    ? (JSON.parse(outer.error.message) as ErrorBody)
    : outer
}

test('[EM20] a 429 response has the quota and the retry delay', async () => {
  await using emulator = await startEmulator()
  const { error } = await readErrorBody(ask(emulator, '[[fail 429 retry=26 Slow down.]]'))
  expect(error).toMatchObject({ code: 429, message: 'Slow down.', status: 'RESOURCE_EXHAUSTED' })
  expect(error.details).toContainEqual({
    '@type': 'type.googleapis.com/google.rpc.RetryInfo',
    retryDelay: '26s',
  })
  expect(error.details).toContainEqual(
    expect.objectContaining({
      '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
      violations: [
        expect.objectContaining({ quotaDimensions: { location: 'global', model: MODEL } }),
      ],
    }),
  )
  const plain = await readErrorBody(ask(emulator, '[[fail 429]]'))
  expect(plain.error.message).toContain('You exceeded your current quota')
})

test.each([
  [400, 'INVALID_ARGUMENT', 'Request contains an invalid argument.'],
  [403, 'PERMISSION_DENIED', 'The caller does not have permission'],
  [500, 'INTERNAL', 'An internal error has occurred.'],
  [503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'],
  [504, 'DEADLINE_EXCEEDED', 'The request timed out.'],
])(
  '[EM21] the error %i has the status %s, and Google’s message unless the script sets one',
  async (code, status, message) => {
    await using emulator = await startEmulator()
    const byDefault = await readErrorBody(ask(emulator, `[[fail ${code}]]`))
    expect(byDefault.error).toMatchObject({
      code,
      status,
      message: expect.stringContaining(message) as string,
    })
    const scripted = await readErrorBody(ask(emulator, `[[fail ${code} 混んでいます]]`))
    expect(scripted.error).toMatchObject({ code, status, message: '混んでいます' })
  },
)

test('[EM22] an error before the first chunk is plain JSON, labelled as an event stream', async () => {
  await using emulator = await startEmulator()
  const request = { contents: [user('[[fail 503]]')] }
  const sse = await post(emulator, 'streamGenerateContent?alt=sse', request)
  expect(sse.status).toBe(503)
  expect(sse.headers.get('content-type')).toBe('text/event-stream')
  expect(JSON.parse(sse.text)).toMatchObject({ error: { code: 503 } })
  const array = await post(emulator, 'streamGenerateContent', request)
  expect(JSON.parse(array.text)).toMatchObject([{ error: { code: 503 } }])
})

test('[EM22] the SDK reads the retry delay of a streaming call', async () => {
  await using emulator = await startEmulator()
  const { error } = await readErrorBody(stream(emulator, '[[fail 429 retry=7]]'))
  expect(error.details).toContainEqual(expect.objectContaining({ retryDelay: '7s' }))
})

test('[EM25] a missing key is rejected', async () => {
  await using emulator = await startEmulator()
  const response = await fetch(`${emulator.baseUrl}/v1beta/models/${MODEL}:generateContent`, {
    method: 'POST',
    body: JSON.stringify({ contents: [user('Hi')] }),
  })
  expect(response.status).toBe(403)
  expect(await response.json()).toEqual({
    error: {
      code: 403,
      message:
        "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
      status: 'PERMISSION_DENIED',
    },
  })
})

test('[EM25] only the configured key is accepted, in a header or in the URL', async () => {
  await using emulator = await startEmulator({ apiKey: 'right' })
  const withKey = (apiKey: string) =>
    connect(emulator, apiKey).models.generateContent({ model: MODEL, contents: '[[say accepted]]' })
  const { error } = await readErrorBody(withKey('wrong'))
  expect(error).toMatchObject({
    code: 400,
    message: 'API key not valid. Please pass a valid API key.',
    status: 'INVALID_ARGUMENT',
  })
  expect(error.details?.[0]).toMatchObject({ reason: 'API_KEY_INVALID' })
  expect((await withKey('right')).text).toBe('accepted')
  const url = `${emulator.baseUrl}/v1beta/models?key=right`
  expect((await fetch(url)).status).toBe(200)
})

test('[EM26] an unknown model gets a 404 with Gemini’s message', async () => {
  await using emulator = await startEmulator()
  const { error } = await readErrorBody(ask(emulator, 'Hi', 'palm-2'))
  expect(error).toMatchObject({
    code: 404,
    status: 'NOT_FOUND',
    message:
      'models/palm-2 is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.',
  })
})

test('[EM26] `models` sets which models exist', async () => {
  await using emulator = await startEmulator({ models: ['my-model', /^tuned-/g] })
  expect((await ask(emulator, '[[say a]]', 'my-model')).text).toBe('a')
  expect((await ask(emulator, '[[say b]]', 'tuned-1')).text).toBe('b')
  expect((await ask(emulator, '[[say b]]', 'tuned-1')).text).toBe('b')
  await expect(ask(emulator, '[[say c]]', MODEL)).rejects.toMatchObject({ status: 404 })
})

test.each([
  ['GET', '/'],
  ['GET', '/v1beta/files'],
  ['POST', `/v1beta/models/${MODEL}:embedContent`],
  ['POST', '/v2/models'],
  ['GET', '/%E0%A4%A?key=%'],
  ['POST', '/v1beta/models/%E0%A4%A:stop'],
  ['DELETE', `/v1beta/models/${MODEL}`],
])('[EM27] %s %s gets a 404 with a list of the supported paths', async (method, path) => {
  await using emulator = await startEmulator()
  const response = await fetch(emulator.baseUrl + path, {
    method,
    headers: { 'x-goog-api-key': 'k' },
  })
  expect(response.status).toBe(404)
  expect(await response.text()).toContain(':streamGenerateContent')
})

test('[EM27] v1, v1alpha and double slashes are supported', async () => {
  await using emulator = await startEmulator()
  const status = async (path: string) =>
    (await fetch(emulator.baseUrl + path, { headers: { 'x-goog-api-key': 'k' } })).status
  expect(await status('/v1/models')).toBe(200)
  expect(await status('/v1alpha/models')).toBe(200)
  expect(await status(`//v1beta/models/${MODEL}`)).toBe(200)
})

test('[EM50] if no responder replies, the error says what to do', async () => {
  await using emulator = await startEmulator({ respond: () => undefined })
  const { error } = await readErrorBody(ask(emulator, 'Hello?'))
  expect(error).toMatchObject({ code: 500, status: 'INTERNAL' })
  expect(error.message).toContain('Hello?')
  expect(error.message).toContain('firstOf')
})

test('[EM51] if a responder throws, only that request fails', async () => {
  const lines: string[] = []
  await using emulator: Emulator = await startEmulator({
    respond: ({ contents }) => {
      if (contents[0]?.parts?.[0]?.text === 'throw') throw new Error('a bug in my responder')
      return [{ type: 'say', text: 'fine' }]
    },
    log: (line) => lines.push(line),
  })
  const { error } = await readErrorBody(ask(emulator, 'throw'))
  expect(error).toMatchObject({ code: 500, status: 'INTERNAL' })
  expect(error.message).toContain('a bug in my responder')
  expect(lines.join('\n')).toContain('rest-errors.test.ts')
  expect((await ask(emulator, 'hello')).text).toBe('fine')
})

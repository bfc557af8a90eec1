import { once } from 'node:events'
import { createConnection } from 'node:net'

import { Modality } from '@google/genai'
import { expect, test } from 'vitest'

import {
  call,
  connect,
  connectRaw,
  FLASH_LIVE,
  replies,
  NATIVE_AUDIO,
  PATH,
  rejection,
  startLive,
  TEXT_SETUP,
  textOf,
  formatClose,
  toolCall,
  turnComplete,
} from './support/live-server.ts'

test.each(['v1alpha', 'v1beta'])('[EL1] the Gen AI SDK connects to %s', async (apiVersion) => {
  await using server = await startLive()
  await using client = await connect(server, { apiVersion })
  client.say('hi')
  expect(textOf(await client.until(turnComplete))).toBe('You said: hi')
})

test.each([
  `/${PATH}?key=key`,
  `${PATH}Constrained?access_token=auth_tokens/abc`,
  `${PATH.replace('v1beta', 'v1alpha')}Constrained?access_token=auth_tokens/abc`,
])('[EL1] %s is a path of Gemini Live', async (path) => {
  await using server = await startLive()
  const { send } = await connectRaw(server, path)
  send(TEXT_SETUP)
  const session = await server.live.nextSession()
  expect(session.setup?.model).toBe(`models/${NATIVE_AUDIO}`)
})

test.each(['/', '/ws/nothing', `${PATH.replace('v1beta', 'v9')}?key=key`])(
  '[EL2] an upgrade request for %s gets a 404',
  async (path) => {
    await using server = await startLive()
    const { rejected } = await connectRaw(server, path)
    expect(await rejected).toContain('404')
  },
)

test('[EL2] an invalid request target gets a 404', async () => {
  await using server = await startLive()
  const socket = createConnection(Number(new URL(server.baseUrl).port), '127.0.0.1')
  socket.write('GET * HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  const [response] = (await once(socket, 'data')) as [Buffer]
  expect(response.toString()).toContain('404')
  await connectRaw(server, `${PATH}?key=key&x=%E0%A4%A`)
  expect(server.live.sessions[0]?.path).toContain('key=[redacted]')
})

test('[EL3] a wrong key is rejected with Gemini’s message', async () => {
  await using server = await startLive({ core: { apiKey: 'right' } })
  expect(await rejection(server, { apiKey: 'wrong' })).toEqual({
    code: 1007,
    reason: 'API key not valid. Please pass a valid API key.',
  })
  expect(server.live.sessions).toEqual([])
})

test('[EL3] a missing key is rejected', async () => {
  await using server = await startLive()
  const { closed } = await connectRaw(server, PATH)
  expect(formatClose(await closed)).toMatch(/^1008 .*unregistered callers/)
})

test('[EL3] a session does not record the key', async () => {
  await using server = await startLive({ core: { apiKey: 'secret' } })
  await connect(server, { apiKey: 'secret' })
  const session = await server.live.nextSession()
  expect(session.path).toBe(`${PATH}?key=[redacted]`)
})

test('[EL4] an unknown model is rejected with a truncated reason', async () => {
  await using server = await startLive({ core: { models: [NATIVE_AUDIO] } })
  const { code, reason } = await rejection(server, { model: 'gemini-9-live' })
  expect(code).toBe(1008)
  expect(reason).toMatch(
    /^models\/gemini-9-live is not found for API version v1beta, or is not supported for bidi/,
  )
  expect(Buffer.byteLength(reason)).toBe(123)
})

test('[EL4] the truncation never splits a character', async () => {
  await using server = await startLive({ core: { models: [] } })
  const { reason } = await rejection(server, { model: `gemini-${'あ'.repeat(60)}` })
  expect(reason).toMatch(/^models\/gemini-あ+$/)
})

test('[EL5] the first message must be a setup', async () => {
  await using server = await startLive()
  const { send, closed } = await connectRaw(server)
  send({ clientContent: { turns: [], turnComplete: true } })
  expect(formatClose(await closed)).toMatch(/^1007 .*setup must be the first/)
})

test('[EL5] a second setup is rejected', async () => {
  await using server = await startLive()
  const { send, closed } = await connectRaw(server)
  send(TEXT_SETUP)
  send(TEXT_SETUP)
  expect(formatClose(await closed)).toMatch(/^1007 .*only the first/)
})

test.each([
  ['{', /^Invalid JSON payload received/],
  ['[]', /^Invalid JSON payload received/],
  ['null', /^Invalid JSON payload received/],
  [{}, /^Request contains an invalid argument/],
  [
    { nonsense: 1 },
    /^Invalid JSON payload received\. Unknown name "nonsense": Cannot find field\.$/,
  ],
  [
    { setup: { ...TEXT_SETUP.setup, responseModalities: ['TEXT'] } },
    /^Invalid JSON payload received\. Unknown name "responseModalities" at 'setup': Cannot find field\.$/,
  ],
  [
    { setup: { ...TEXT_SETUP.setup, generationConfig: { unknown: 1 } } },
    /Unknown name "unknown" at 'setup\.generation_config'/,
  ],
  [
    { setup: { ...TEXT_SETUP.setup, systemInstruction: 'Be brief.' } },
    /^Invalid value at 'setup\.system_instruction'/,
  ],
  [{ ...TEXT_SETUP, clientContent: {} }, /oneof field 'message_type' is already set/],
])('[EL6] %j closes the connection with 1007', async (frame, reason) => {
  await using server = await startLive()
  const { send, closed } = await connectRaw(server)
  send(frame)
  const closing = await closed
  expect(closing.code).toBe(1007)
  expect(closing.reason).toMatch(reason)
})

test('[EL6] an invalid later message closes the connection as well', async () => {
  await using server = await startLive()
  const { send, closed } = await connectRaw(server)
  send(TEXT_SETUP)
  send({ realtimeInput: { unknown: 1 } })
  expect(formatClose(await closed)).toMatch(/^1007 .*Unknown name "unknown" at 'realtime_input'/)
})

test('[EL46] a frame that is nested too deeply ends only its own session', async () => {
  await using server = await startLive()
  const { send, closed } = await connectRaw(server)
  send(`{"clientContent":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
  expect(await closed).toMatchObject({ code: 1011 })
  await connect(server)
})

test('[EL7] a session replies in TEXT or in AUDIO, not both', async () => {
  await using server = await startLive()
  const config = { responseModalities: [Modality.TEXT, Modality.AUDIO] }
  expect(formatClose(await rejection(server, { config }))).toMatch(
    /^1007 The requested combination of response modalities \(TEXT, AUDIO\) is not supported/,
  )
})

test.each([NATIVE_AUDIO, FLASH_LIVE])(
  '[EL7] with `modalities: by-model`, %s does not support TEXT',
  async (model) => {
    await using server = await startLive({ modalities: 'by-model' })
    expect(formatClose(await rejection(server, { model }))).toMatch(
      /^1007 .*response modalities \(TEXT\) is not supported/,
    )
    await connect(server, { model: 'gemini-2.0-flash-live-001' })
    expect(server.live.sessions[1]?.closed).toBeUndefined()
  },
)

test('[EL8] the responder receives model, instruction, functions and conversation', async () => {
  await using server = await startLive()
  const look = { name: 'look', description: 'Looks.' }
  await using client = await connect(server, {
    config: {
      systemInstruction: 'Be brief.',
      tools: [{ functionDeclarations: [look] }],
      thinkingConfig: { includeThoughts: true },
      contextWindowCompression: { slidingWindow: {} },
      temperature: 0.5,
    },
  })
  client.say('hi')
  await client.until(turnComplete)
  expect(server.prompts).toEqual([
    {
      mode: 'live',
      model: NATIVE_AUDIO,
      systemInstruction: 'Be brief.',
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
      functions: [look],
      includeThoughts: true,
    },
  ])
})

test('[EL8] a context update changes instruction and functions', async () => {
  await using server = await startLive()
  await using client = await connect(server, { config: { systemInstruction: 'Be brief.' } })
  const wave = { name: 'wave', description: 'Waves.' }
  client.session.sendContextUpdate({
    systemInstruction: 'Be kind.',
    tools: { tools: [{ functionDeclarations: [wave] }] },
  })
  client.say('hi')
  await client.until(turnComplete)
  expect(server.prompts[0]).toMatchObject({ systemInstruction: 'Be kind.', functions: [wave] })
})

test('[EL9] snake_case is accepted', async () => {
  await using server = await startLive({ respond: replies({ pay: [call('pay')] }) })
  const { send, socket } = await connectRaw(server)
  send({
    setup: {
      model: `models/${NATIVE_AUDIO}`,
      generation_config: { response_modalities: ['TEXT'] },
      system_instruction: { parts: [{ text: 'Be brief.' }] },
    },
  })
  send({
    client_content: { turns: [{ role: 'user', parts: [{ text: 'pay' }] }], turn_complete: true },
  })
  const session = await server.live.nextSession()
  await session.waitForSent((frame) => 'toolCall' in frame)
  send({
    tool_response: { function_responses: [{ id: 'pay', name: 'pay', response: { a_b: 1 } }] },
  })
  await session.waitFor((frame) => 'tool_response' in frame)
  expect(session.history.at(-1)?.parts?.[0]?.functionResponse?.response).toEqual({ a_b: 1 })
  socket.close()
})

test('[EL10] completeSetup: false never completes a setup', async () => {
  await using server = await startLive({ completeSetup: false })
  const { send, socket, closed } = await connectRaw(server)
  send(TEXT_SETUP)
  const [session] = server.live.sessions
  await session?.waitFor((frame) => 'setup' in frame)
  expect(session?.sent).toEqual([])
  socket.close()
  await closed
})

test.each(['binary', 'text'] as const)('[EL11] the server sends %s frames', async (frames) => {
  await using server = await startLive({ frames })
  const { send, socket } = await connectRaw(server)
  const first = new Promise<boolean>((resolve) => {
    socket.on('message', (_data, isBinary) => resolve(isBinary))
  })
  send(TEXT_SETUP)
  expect(await first).toBe(frames === 'binary')
})

test('[EL11] the Gen AI SDK reads text frames as well', async () => {
  await using server = await startLive({ frames: 'text', respond: replies({ pay: [call('pay')] }) })
  await using client = await connect(server)
  client.say('pay')
  expect((await client.until(toolCall)).at(-1)?.toolCall?.functionCalls?.[0]?.name).toBe('pay')
})

import { once } from 'node:events'
import { createConnection } from 'node:net'

import { Modality } from '@google/genai'
import { expect, test } from 'vitest'

import {
  call,
  connect,
  connectRaw,
  FLASH_LIVE,
  mindOf,
  NATIVE_AUDIO,
  PATH,
  refusal,
  say,
  startLab,
  TEXT_SETUP,
  textOf,
  told,
  toolCall,
  turnComplete,
} from './live-lab.ts'

test.each(['v1alpha', 'v1beta'])('[EL1] the Gen AI SDK connects to %s', async (apiVersion) => {
  await using lab = await startLab()
  await using client = await connect(lab, { apiVersion })
  client.say('hi')
  expect(textOf(await client.until(turnComplete))).toBe('You said: hi')
})

test.each([
  `/${PATH}?key=key`,
  `${PATH}Constrained?access_token=auth_tokens/abc`,
  `${PATH.replace('v1beta', 'v1alpha')}Constrained?access_token=auth_tokens/abc`,
])('[EL1] %s is an address of Gemini Live', async (path) => {
  await using lab = await startLab()
  const { send } = await connectRaw(lab, path)
  send(TEXT_SETUP)
  const session = await lab.desk.nextSession()
  expect(session.setup?.model).toBe(`models/${NATIVE_AUDIO}`)
})

test.each(['/', '/ws/nothing', `${PATH.replace('v1beta', 'v9')}?key=key`])(
  '[EL2] an upgrade at %s gets a 404',
  async (path) => {
    await using lab = await startLab()
    const { refused } = await connectRaw(lab, path)
    expect(await refused).toContain('404')
  },
)

test('[EL2] nor does a target that is no path at all trouble the server', async () => {
  await using lab = await startLab()
  const socket = createConnection(Number(new URL(lab.baseUrl).port), '127.0.0.1')
  socket.write('GET * HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString()).toContain('404')
  await connectRaw(lab, `${PATH}?key=key&x=%E0%A4%A`)
  expect(lab.desk.sessions[0]?.path).toContain('key=[redacted]')
})

test('[EL3] a wrong key is refused with Gemini’s sentence', async () => {
  await using lab = await startLab({ world: { apiKey: 'right' } })
  expect(await refusal(lab, { apiKey: 'wrong' })).toEqual({
    code: 1007,
    reason: 'API key not valid. Please pass a valid API key.',
  })
  expect(lab.desk.sessions).toEqual([])
})

test('[EL3] a missing key is refused', async () => {
  await using lab = await startLab()
  const { closed } = await connectRaw(lab, PATH)
  expect(told(await closed)).toMatch(/^1008 .*unregistered callers/)
})

test('[EL3] the key never shows in a session', async () => {
  await using lab = await startLab({ world: { apiKey: 'secret' } })
  await connect(lab, { apiKey: 'secret' })
  const session = await lab.desk.nextSession()
  expect(session.path).toBe(`${PATH}?key=[redacted]`)
})

test('[EL4] a model that does not exist is refused, the sentence cut as a close frame demands', async () => {
  await using lab = await startLab({ world: { models: [NATIVE_AUDIO] } })
  const { code, reason } = await refusal(lab, { model: 'gemini-9-live' })
  expect(code).toBe(1008)
  expect(reason).toMatch(
    /^models\/gemini-9-live is not found for API version v1beta, or is not supported for bidi/,
  )
  expect(Buffer.byteLength(reason)).toBe(123)
})

test('[EL4] the cut never splits a character', async () => {
  await using lab = await startLab({ world: { models: [] } })
  const { reason } = await refusal(lab, { model: `gemini-${'あ'.repeat(60)}` })
  expect(reason).toMatch(/^models\/gemini-あ+$/)
})

test('[EL5] the first message must be a setup', async () => {
  await using lab = await startLab()
  const { send, closed } = await connectRaw(lab)
  send({ clientContent: { turns: [], turnComplete: true } })
  expect(told(await closed)).toMatch(/^1007 .*setup must be the first/)
})

test('[EL5] a second setup is refused', async () => {
  await using lab = await startLab()
  const { send, closed } = await connectRaw(lab)
  send(TEXT_SETUP)
  send(TEXT_SETUP)
  expect(told(await closed)).toMatch(/^1007 .*only the first/)
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
    { setup: { ...TEXT_SETUP.setup, generationConfig: { warmth: 1 } } },
    /Unknown name "warmth" at 'setup\.generation_config'/,
  ],
  [
    { setup: { ...TEXT_SETUP.setup, systemInstruction: 'Be brief.' } },
    /^Invalid value at 'setup\.system_instruction'/,
  ],
  [{ ...TEXT_SETUP, clientContent: {} }, /oneof field 'message_type' is already set/],
])('[EL6] %j closes the connection with 1007', async (frame, reason) => {
  await using lab = await startLab()
  const { send, closed } = await connectRaw(lab)
  send(frame)
  const closing = await closed
  expect(closing.code).toBe(1007)
  expect(closing.reason).toMatch(reason)
})

test('[EL6] what is unreadable later closes the connection too', async () => {
  await using lab = await startLab()
  const { send, closed } = await connectRaw(lab)
  send(TEXT_SETUP)
  send({ realtimeInput: { odour: 'roses' } })
  expect(told(await closed)).toMatch(/^1007 .*Unknown name "odour" at 'realtime_input'/)
})

test('[EL46] a frame nested too deep ends its session alone', async () => {
  await using lab = await startLab()
  const { send, closed } = await connectRaw(lab)
  send(`{"clientContent":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
  expect(await closed).toMatchObject({ code: 1011 })
  await connect(lab)
})

test('[EL7] an answer is written or spoken, not both', async () => {
  await using lab = await startLab()
  const config = { responseModalities: [Modality.TEXT, Modality.AUDIO] }
  expect(told(await refusal(lab, { config }))).toMatch(
    /^1007 The requested combination of response modalities \(TEXT, AUDIO\) is not supported/,
  )
})

test.each([NATIVE_AUDIO, FLASH_LIVE])('[EL7] by-model, %s does not write', async (model) => {
  await using lab = await startLab({ modalities: 'by-model' })
  expect(told(await refusal(lab, { model }))).toMatch(
    /^1007 .*response modalities \(TEXT\) is not supported/,
  )
  await connect(lab, { model: 'gemini-2.0-flash-live-001' })
  expect(lab.desk.sessions[1]?.closed).toBeUndefined()
})

test('[EL8] the mind learns model, instruction, functions and conversation', async () => {
  await using lab = await startLab()
  const look = { name: 'look', description: 'Looks.' }
  await using client = await connect(lab, {
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
  expect(lab.prompts).toEqual([
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
  await using lab = await startLab({ mind: mindOf({ go: [call('wave')] }) })
  await using client = await connect(lab, { config: { systemInstruction: 'Be brief.' } })
  client.session.sendContextUpdate({ systemInstruction: 'Be kind.' })
  client.say('hi')
  await client.until(turnComplete)
  expect(lab.prompts[0]?.systemInstruction).toBe('Be kind.')
})

test('[EL9] snake_case is understood', async () => {
  await using lab = await startLab({ mind: mindOf({ pay: [call('pay')], hi: [say('Hello')] }) })
  const { send, socket } = await connectRaw(lab)
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
  const session = await lab.desk.nextSession()
  await session.waitForSent((frame) => 'toolCall' in frame)
  send({
    tool_response: { function_responses: [{ id: 'pay', name: 'pay', response: { a_b: 1 } }] },
  })
  await session.waitFor((frame) => 'tool_response' in frame)
  expect(session.history.at(-1)?.parts?.[0]?.functionResponse?.response).toEqual({ a_b: 1 })
  socket.close()
})

test('[EL10] a setup can be left without its completion', async () => {
  await using lab = await startLab({ completeSetup: false })
  const { send, socket, closed } = await connectRaw(lab)
  send(TEXT_SETUP)
  const [session] = lab.desk.sessions
  await session?.waitFor((frame) => 'setup' in frame)
  expect(session?.sent).toEqual([])
  socket.close()
  await closed
})

test.each(['binary', 'text'] as const)('[EL11] the server sends %s frames', async (frames) => {
  await using lab = await startLab({ frames })
  const { send, socket } = await connectRaw(lab)
  const first = new Promise<boolean>((resolve) => {
    socket.on('message', (_data, isBinary) => resolve(isBinary))
  })
  send(TEXT_SETUP)
  expect(await first).toBe(frames === 'binary')
})

test('[EL11] the Gen AI SDK reads text frames as well', async () => {
  await using lab = await startLab({ frames: 'text', mind: mindOf({ pay: [call('pay')] }) })
  await using client = await connect(lab)
  client.say('pay')
  expect((await client.until(toolCall)).at(-1)?.toolCall?.functionCalls?.[0]?.name).toBe('pay')
})

import { expect, test } from 'vitest'

import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { refusedUpgrade, SocketClient } from '../sockets/support/socket-client.ts'
import { serve } from '../support/serve.ts'
import { BidiClient } from './support/bidi-client.ts'
import { spoken } from './support/spoken.ts'

test.each([
  ['the subprotocol', { protocols: ['bidi'] }, 'bidi'],
  ['the subprotocol beside an unknown one', { protocols: ['other', 'bidi'] }, 'bidi'],
  ['the address', { protocols: [], query: '?dialect=bidi' }, ''],
  ['a chat in the address', { protocols: [], query: '?chatId=chat-1' }, ''],
])('[BD1] text frames are chosen by %s', async (_case, options, protocol) => {
  await using server = await serve()
  await using client = await BidiClient.open(server.url, options)
  expect(client.socket.protocol).toBe(protocol)
  client.say('[[say Hello there.]]')
  await client.untilDone()
  expect(client.text).toBe('Hello there.')
  // Every frame is an event of the stream, including the first.
  expect(client.chunks).toHaveLength(client.frames.length)
})

test('[BD1] without a subprotocol, the first frame selects the format', async () => {
  await using server = await serve()
  await using client = await BidiClient.open(server.url, { protocols: [] })
  client.say('[[say Hello there.]]')
  await client.untilDone()
  expect(client.text).toBe('Hello there.')
  // The client could read everything that it received.
  expect(client.chunks).toHaveLength(client.frames.length)
})

test('[BD1] a client that asked for JSON frames, or began with one, keeps them', async () => {
  await using server = await serve()
  await using asked = await SocketClient.open(server.url, { protocols: ['adk-stream.v1'] })
  asked.send({ type: 'message', messages: [] })
  expect(await asked.nextOf('refused')).toMatchObject({ frame: 'message' })
  await using begun = await SocketClient.open(server.url)
  await begun.sync()
  begun.send({ type: 'message', messages: [] })
  expect(await begun.nextOf('refused')).toMatchObject({ frame: 'message' })
})

test('[BD1] [BD12] [DI4] an unknown subprotocol, an unknown dialect and an invalid chat id are rejected before the upgrade', async () => {
  await using server = await serve()
  const { status, message } = await refusedUpgrade(server.url, { protocols: ['other'] })
  expect(status).toBe(400)
  expect(message).toContain('bidi')
  for (const query of ['?chatId=a%20b', '?dialect=bidi,nope&chatId=chat-1', '?dialect=nope']) {
    await expect(BidiClient.open(server.url, { query })).rejects.toThrow(/400/)
  }
})

test('[BD2] a malformed event is rejected by name; the turn and the socket continue', async () => {
  await using server = await serve()
  await using client = await BidiClient.open(server.url)
  client.send('{"type":"message","messages":7}')
  await client.untilDone()
  expect(client.chunks).toEqual([
    { type: 'error', errorText: expect.stringMatching(/^message: messages: /) as string },
    { type: '[DONE]' },
  ])
  client.say('[[say One, ]][[wait go]][[say two.]]')
  await client.until(({ text }) => text.startsWith('One'))
  for (const bad of ['{', '[]', '{"type":"nope"}', '{"type":"tool_result"}']) client.send(bad)
  await client.until(({ types }) => types.filter((type) => type === 'data-refused').length === 4)
  // A stream that is open would end at an `error` for a client of the AI SDK.
  expect(client.ofType('error')).toHaveLength(1)
  expect(
    client.ofType('data-refused').map(({ data }) => (data as { event: string }).event),
  ).toEqual(['unknown', 'unknown', 'nope', 'tool_result'])
  server.emulator.release('go')
  await client.untilDone(2)
  expect(client.text).toBe('One,two.')
})

test('[BD4] an approval request follows its call, and its hint comes before it', async () => {
  await using testBridge = await TestBridge.open()
  await using client = await BidiClient.open(testBridge.url)
  client.say(`${callPayment(50)}[[then]][[say Paid.]]`)
  await client.until(({ types }) => types.at(-1) === 'finish-step')
  const asked = client.types.slice(client.types.indexOf('tool-input-start'))
  expect(asked).toEqual([
    'tool-input-start',
    'tool-input-available',
    'data-approval',
    'start-step',
    'tool-approval-request',
    'finish-step',
  ])
  client.confirm(client.asked[0]?.approvalId ?? '', true)
  await client.untilDone()
  expect(client.types.slice(client.types.lastIndexOf('data-approval'))).toEqual([
    'data-approval',
    'tool-output-available',
    'finish-step',
    'start-step',
    'text-start',
    'text-delta',
    'text-end',
    'finish-step',
    'finish',
    '[DONE]',
  ])
})

test('[BD3] without a live model, a pause ends the stream, and the reply continues in another one', async () => {
  await using testBridge = await TestBridge.open({ live: undefined as never })
  await using client = await BidiClient.open(testBridge.url)
  client.say(`${callPayment(50)}[[then]][[say Paid.]]`)
  await client.untilDone()
  client.confirm(client.asked[0]?.approvalId ?? '', true)
  await client.untilDone(2)
  expect(client.text).toBe('Paid.')
  expect(new Set(client.ofType('start').map(({ messageId }) => messageId)).size).toBe(1)
  expect(testBridge.wallet.payments).toHaveLength(1)
  client.send({ type: 'audio_control', action: 'start' })
  await client.until(({ types }) => types.includes('error'))
  expect(client.ofType('error')[0]?.['errorText']).toMatch(/^audio_control: /)
})

test('[BD11] a ping gets a pong with its timestamp, without a chat', async () => {
  await using server = await serve()
  await using client = await BidiClient.open(server.url)
  client.send({ type: 'ping', version: '1.0', timestamp: 1_735_000_000_000 })
  await client.until(({ frames }) => frames.length === 1)
  expect(client.frames).toEqual(['{"type":"pong","timestamp":1735000000000}'])
  client.say('[[say Hello.]]', 'chat-7')
  await client.untilDone()
  expect(client.text).toBe('Hello.')
})

test.each([
  ['a live conversation', {}],
  ['turn by turn', { live: undefined as never }],
])(
  '[BD11] an interrupt stops %s: the stream ends, and the chat continues',
  async (_case, options) => {
    await using testBridge = await TestBridge.open(options)
    await using client = await BidiClient.open(testBridge.url)
    client.say('[[say One, ]][[wait never]][[say two.]]')
    // Text frames contain the text of a live turn at its end (BD100).
    await using other = await SocketClient.open(testBridge.url, {
      headers: { 'x-api-key': 'hanako' },
    })
    await client.until(({ types }) => types.includes('start-step'))
    other.resume()
    await other.untilText('One,')
    client.send({ type: 'interrupt', reason: 'user_abort' })
    await client.untilDone()
    expect(client.text.trim()).toBe('One,')
    expect(client.done).toBe(1)
  },
)

test('[BD12] a socket has one chat: another one is rejected, and a chat without an id gets one', async () => {
  await using testBridge = await TestBridge.open()
  await using client = await BidiClient.open(testBridge.url)
  client.say('[[say Hello.]]', 'chat-1')
  await client.untilDone()
  client.say('[[say Hello.]]', 'chat-2')
  await client.untilDone(2)
  expect(client.ofType('error')[0]?.['errorText']).toMatch(/^message: .*chat-1.*chat-2/)
  await using nameless = await BidiClient.open(testBridge.url)
  const content = '[[say Hello.]]'
  nameless.send({ type: 'message', messages: [{ role: 'user', content }] })
  await nameless.untilDone()
  nameless.send({ type: 'message', messages: [{ role: 'user', content }] })
  await nameless.untilDone(2)
  expect(nameless.text).toBe('Hello.Hello.')
  expect(await testBridge.page().messages('chat-1')).toHaveLength(2)
})

test('[BD2] [BD14] audio over the limit is rejected by its event, and the next audio is accepted', async () => {
  await using testBridge = await TestBridge.open({ limits: { maxAudioFrameBytes: 3_200 } })
  await using client = await BidiClient.open(testBridge.url)
  client.send({ type: 'audio_chunk', chunk: Buffer.alloc(3_300).toString('base64') })
  await client.until(({ types }) => types.includes('error'))
  expect(client.ofType('error')[0]?.['errorText']).toMatch(/^audio_chunk: .*3200/)
  client.send({ type: 'audio_chunk', chunk: Buffer.alloc(3_200).toString('base64') })
  await testBridge.emulator.live.nextSession()
  await client.sync()
  expect(client.ofType('error')).toHaveLength(1)
})

test('[BD14] speech in audio_chunk gets a reply in data-pcm, and its transcript is a user message', async () => {
  await using testBridge = await TestBridge.open({ live: (model) => ({ model }) })
  await using client = await BidiClient.open(testBridge.url, { query: '?chatId=chat-1' })
  testBridge.emulator.live.queueTranscript('[[say Hello to you.]]')
  // Speech before the model is ready is lost. A page waits for this status.
  const headers = { 'x-api-key': 'hanako' }
  await using watcher = await SocketClient.open(testBridge.url, { headers })
  watcher.send({ type: 'watch', id: 'chat-1', audio: 'none' })
  client.send({ type: 'audio_control', version: '1.0', action: 'start' })
  await watcher.next(({ type, status }) => type === 'status' && status === 'open')
  for (const chunk of spoken()) client.send({ type: 'audio_chunk', chunk, sampleRate: 16_000 })
  client.send({ type: 'audio_control', version: '1.0', action: 'stop' })
  await client.untilDone()
  expect(client.ofType('data-pcm')[0]?.['data']).toMatchObject({
    content: expect.stringMatching(/^[\w+/]+=*$/) as string,
    sampleRate: 24_000,
    channels: 1,
    bitDepth: 16,
  })
  expect(client.text).toBe('Hello to you.')
  expect(client.ofType('data-user-message')[0]?.['data']).toMatchObject({
    role: 'user',
    parts: [{ type: 'text', text: '[[say Hello to you.]]' }],
  })
  expect(client.done).toBe(1)
})

import { Modality } from '@google/genai'
import type { Action } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import { isRecord } from '../../src/protocol/guards.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { defer, tool } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { openSockets } from './support/reconnecting-run.ts'
import { serve } from '../support/serve.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import {
  finishOf,
  framesOf,
  joinLive,
  nextUnasked,
  openLiveTestBridge,
  untilAsked,
  whole,
} from './support/live-test-bridge.ts'
import { speak, speakInJson } from './support/voice.ts'

test('[LV36] a closing server starts no conversation for clients that still send audio', async () => {
  const called = defer()
  const gate = defer()
  const slow = tool('slow', async () => {
    called.resolve()
    await gate.promise
    return { done: true }
  })
  await using testBridge = await openLiveTestBridge({ tools: () => [slow] })
  const { emulator } = testBridge
  await using client = await joinLive(testBridge)
  client.say('[[call slow {}]]')
  await called.promise
  const closing = testBridge.bridge.close()
  speakInJson(client, 'chat-2')
  expect(await client.nextOf('refused')).toMatchObject({ frame: 'audio', code: 'unavailable' })
  client.say('[[say One.]]', 'r2', 'chat-2')
  expect(await client.nextOf('error', 'r2')).toMatchObject({ code: 'unavailable' })
  gate.resolve()
  expect(await client.closed).toBe(1001)
  await closing
  expect(emulator.live.sessions).toHaveLength(1)
})

test('[LV36] a conversation that is starting when the server closes does not open', async () => {
  const store = await openSqliteStore({ path: ':memory:' })
  const database = defer<Store>()
  await using server = await serve({
    store: database.promise,
    authenticate: () => ({ id: 'hanako' }),
    live: (model) => ({ model }),
  })
  await using client = await SocketClient.open(server.url)
  client.send({ type: 'watch', id: 'chat-1' })
  await client.sync()
  const closing = server.bridge.close()
  database.resolve(store)
  expect(await client.nextOf('refused')).toMatchObject({ frame: 'watch', code: 'unavailable' })
  await closing
  await store.close()
  expect(server.emulator.live.sessions).toHaveLength(0)
})

/** The model sees the end of a conversation shortly before the server has finished it. */
async function sayWhenFree(client: SocketClient, chatId: string, tries = 1): Promise<string> {
  const requestId = `try-${tries}`
  client.say('[[say Three.]]', requestId, chatId)
  const { type } = await client.next((frame) => frame.requestId === requestId)
  if (type !== 'error' || tries === 20) return whole(client, requestId)
  return sayWhenFree(client, chatId, tries + 1)
}

test('[LV37] the conversations of a principal are limited; leaving one allows another', async () => {
  const limits = { maxLiveChatsPerPrincipal: 2 }
  await using testBridge = await openLiveTestBridge({ limits, live: { graceMs: 30 } })
  const [first, second] = [await joinLive(testBridge), await joinLive(testBridge)]
  first.say('[[say One.]]', 'r1', 'chat-1')
  second.say('[[say Two.]]', 'r1', 'chat-2')
  await Promise.all([whole(first), whole(second)])
  await using third = await joinLive(testBridge)
  third.say('[[say Three.]]', 'r1', 'chat-3')
  expect(await third.nextOf('error', 'r1')).toMatchObject({ code: 'too-many-live-chats' })
  third.send({ type: 'watch', id: 'chat-4' })
  expect(await third.nextOf('refused')).toMatchObject({ code: 'too-many-live-chats' })
  // Other principals have their own limit.
  await using other = await joinLive(testBridge, 'taro')
  other.say('[[say Mine.]]')
  expect(await whole(other)).toBe('Mine.')
  const [session] = testBridge.emulator.live.sessions
  await first[Symbol.asyncDispose]()
  await session?.ended
  expect(await sayWhenFree(third, 'chat-3')).toBe('Three.')
  await second[Symbol.asyncDispose]()
})

const PICTURE = { data: Buffer.from('a picture').toString('base64'), mimeType: 'image/jpeg' }

/** The client marks the start and end of speech. */
const BY_HAND = {
  responseModalities: [Modality.TEXT],
  realtimeInputConfig: { automaticActivityDetection: { disabled: true } },
}

for (const frame of [
  { type: 'audio', data: Buffer.alloc(320).toString('base64'), mimeType: 'audio/pcm;rate=16000' },
  { type: 'image', ...PICTURE },
  { type: 'activity', state: 'start' },
]) {
  test(`[LV19] a conversation that ${frame.type} started is closed after its client has left`, async () => {
    await using testBridge = await openLiveTestBridge({ live: { graceMs: 30, runConfig: BY_HAND } })
    const client = await joinLive(testBridge)
    client.send({ ...frame, id: 'chat-1' })
    const session = await testBridge.emulator.live.nextSession()
    await client[Symbol.asyncDispose]()
    await session.ended
    expect(openSockets(testBridge.emulator)).toBe(0)
  })
}

test.each([
  ['typed', (client: SocketClient) => client.say(NEXT, 'r2')],
  ['spoken', (client: SocketClient) => speakInJson(client)],
])(
  '[AP1948] a reply that ended with its conversation while an approved call ran is shown as stopped after the next message: %s',
  async (_how, sayNext) => {
    const [started, gate] = [defer(), defer()]
    const before = async () => {
      started.resolve()
      await gate.promise
    }
    await using testBridge = await openLiveTestBridge({
      tools: (wallet) => [paymentTool(wallet, { before })],
      live: { graceMs: 1 },
    })
    const client = await joinLive(testBridge)
    client.say(`${callPayment(50)}[[then]][[say Paid.]]`)
    const [approvalId = ''] = await untilAsked(client)
    await client.nextOf('end', 'r1')
    client.send({ type: 'decide', decisionId: 'd-1', id: 'chat-1', approvalId, approved: true })
    await started.promise
    client.socket.close()
    await expect.poll(() => openSockets(testBridge.emulator)).toBe(0)
    gate.resolve()
    const page = testBridge.page()
    const isPaid = async () => toolParts((await page.messages()).at(-1)).map(({ state }) => state)
    await expect.poll(isPaid).toEqual(['output-available'])
    await using next = await joinLive(testBridge)
    next.send({ type: 'watch', id: 'chat-1' })
    testBridge.emulator.live.queueTranscript(NEXT)
    sayNext(next)
    await page.untilMessages((messages) => textOf(messages[3]) === 'Next.')
    const messages = await page.messages()
    expect(messages[1]).toHaveProperty('metadata.stopped', true)
    expect(messages[3]).not.toHaveProperty('metadata.stopped')
    expect(testBridge.wallet.payments).toHaveLength(1)
  },
)

const BLOCKING_MODEL = 'gemini-3.1-flash-live-preview'

const NEXT = '[[say Next.]]'

test.each([
  ['approved', FREE_MODEL, true],
  ['denied', FREE_MODEL, false],
  ['approved', BLOCKING_MODEL, true],
  ['denied', BLOCKING_MODEL, false],
])(
  '[AP1948] a live reply whose model has nothing to say to a result is not shown as stopped: %s, %s',
  async (_how, liveModel, approved) => {
    const replies: Action[][] = [
      [{ type: 'call', name: 'process_payment', args: { amount: 50, recipient: 'Hanako' } }],
      [],
    ]
    await using testBridge = await openLiveTestBridge({
      liveModel,
      respond: () => replies.shift() ?? [{ type: 'say', text: 'OK.' }],
    })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say('Pay.')
    const [approvalId = ''] = await untilAsked(client)
    await client.nextOf('end', 'r1')
    client.send({ type: 'decide', decisionId: 'd-1', id: 'chat-1', approvalId, approved })
    await client.nextOf('end', await nextUnasked(client))
    client.say('Next.', 'r2')
    expect(await whole(client, 'r2')).toBe('OK.')
    const messages = await testBridge.page().messages()
    expect(messages.map(textOf)).toEqual(['Pay.', '', 'Next.', 'OK.'])
    expect(messages[1]).not.toHaveProperty('metadata.stopped')
    expect(messages[1]).not.toHaveProperty('metadata.error')
    expect(testBridge.errors).toEqual([])
  },
)

test.each([
  ['with a part of the text', '[[say Half.]] [[wait never]] [[say Whole.]]', 'Half.'],
  ['without any output', '[[wait never]] [[say Whole.]]', ''],
])(
  '[LV1961] [RL331] a reply that the closing server cuts off keeps its text, and is shown as stopped: %s',
  async (_how, script, text) => {
    await using testBridge = await openLiveTestBridge()
    await using client = await joinLive(testBridge)
    client.say(script)
    const session = await testBridge.emulator.live.nextSession()
    await expect.poll(() => JSON.stringify(session.received)).toContain('never')
    await client.next(() => client.text('r1') === text)
    await testBridge.restart()
    expect(finishOf(client)).toMatchObject({ messageMetadata: { stopped: true } })
    const page = testBridge.page()
    const messages = await page.messages()
    expect(messages.map(textOf)).toEqual([script, text])
    expect(messages[1]).toHaveProperty('metadata.stopped', true)
    await using next = await joinLive(testBridge)
    next.say('[[say Next.]]', 'r2')
    expect(await whole(next, 'r2')).toBe('Next.')
    expect((await page.messages()).slice(0, 2)).toEqual(messages)
    expect(testBridge.errors).toEqual([])
  },
)

test('[LV1961] a spoken reply that the closing server cuts off keeps the words of the person and of the model', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using client = await joinLive(testBridge)
  await untilHalfSpoken(testBridge, client)
  await testBridge.restart()
  const messages = await testBridge.page().messages()
  expect(messages.map(textOf)).toEqual([WORDS, 'Half.'])
  expect(messages[1]).toHaveProperty('metadata.stopped', true)
})

test('[LV1962] a spoken reply that the person stops at its beginning keeps the words of both, and the next one has its own', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using client = await joinLive(testBridge)
  await untilHalfSpoken(testBridge, client)
  client.send({ type: 'stop', id: 'chat-1' })
  const page = testBridge.page()
  await page.untilMessages(([, reply]) => isRecord(reply?.metadata) && 'stopped' in reply.metadata)
  expect((await page.messages()).map(textOf)).toEqual([WORDS, 'Half.'])
  testBridge.emulator.live.queueTranscript('[[say Next.]]')
  speak(client)
  await page.untilMessages((shown) => textOf(shown.at(-1)) === 'Next.')
  expect((await page.messages()).map(textOf)).toEqual([WORDS, 'Half.', '[[say Next.]]', 'Next.'])
  expect(testBridge.errors).toEqual([])
})

test('[LV1962] a spoken reply that fails at its beginning keeps the words of both', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using client = await joinLive(testBridge)
  await untilHalfSpoken(testBridge, client)
  const session = await testBridge.emulator.live.nextSession()
  session.close(1007, 'Request contains an invalid argument.')
  const page = testBridge.page()
  await page.untilMessages(([, reply]) => isRecord(reply?.metadata) && 'error' in reply.metadata)
  expect((await page.messages()).map(textOf)).toEqual([WORDS, 'Half.'])
})

const WORDS = '[[say Half.]] [[wait never]] [[say Whole.]]'

/** Speaks, and waits for the beginning of the reply. */
async function untilHalfSpoken(testBridge: TestBridge, client: SocketClient): Promise<void> {
  client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  testBridge.emulator.live.queueTranscript(WORDS)
  speak(client)
  await client.untilText('Half.', await nextUnasked(client))
}

test('[LV1961] a message that waits for a person when the server closes is not shown as stopped, and continues', async () => {
  await using testBridge = await openLiveTestBridge()
  await using client = await joinLive(testBridge)
  client.say(`[[say One moment.]] ${callPayment(50)}[[then]][[say Paid.]]`)
  const [approvalId = ''] = await untilAsked(client)
  await testBridge.restart()
  const page = testBridge.page()
  expect((await page.messages())[1]).not.toHaveProperty('metadata.stopped')
  await page.decide(approvalId, { approved: true })
  await page.untilMessages(([, answer]) => textOf(answer).includes('Paid.'))
  expect((await page.messages())[1]).not.toHaveProperty('metadata.stopped')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[WS23] a client that stops watching receives nothing and keeps no conversation open', async () => {
  await using testBridge = await openLiveTestBridge({ live: { graceMs: 30 } })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  const session = await testBridge.emulator.live.nextSession()
  client.send({ type: 'unwatch', id: 'chat-1' })
  await session.ended
  client.socket.send(Buffer.alloc(320))
  expect(await client.nextOf('refused')).toMatchObject({ frame: 'binary', code: 'bad-request' })
  expect(openSockets(testBridge.emulator)).toBe(0)
  // A chat that was never watched has no conversation.
  client.send({ type: 'unwatch', id: 'chat-9' })
  client.send({ type: 'ping', nonce: 'n' })
  expect(await client.nextOf('pong')).toMatchObject({ nonce: 'n' })
})

test('[WS23] a client that sent something stays in the chat after it stops watching', async () => {
  await using testBridge = await openLiveTestBridge({ live: { graceMs: 30 } })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say('[[say One.]]', 'r1')
  await whole(client)
  client.send({ type: 'unwatch', id: 'chat-1' })
  client.say('[[say Two.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Two.')
})

test('[LV6] a frame that is not an image or is too large is rejected and starts no conversation', async () => {
  await using testBridge = await openLiveTestBridge({ limits: { maxFileBytes: 100 } })
  await using client = await joinLive(testBridge)
  client.send({ type: 'image', id: 'chat-1', ...PICTURE, mimeType: 'text/html' })
  expect(await client.nextOf('refused')).toMatchObject({ frame: 'image', code: 'bad-request' })
  const data = Buffer.alloc(101).toString('base64')
  client.send({ type: 'image', id: 'chat-1', ...PICTURE, data })
  await client.next((frame) => frame['code'] === 'too-large')
  expect(testBridge.emulator.live.sessions).toHaveLength(0)
})

test('[RQ6] frames have the limits of messages: text, images and audio', async () => {
  await using testBridge = await openLiveTestBridge({
    limits: { maxTextLength: 100, maxFileBytes: 100 },
  })
  await using client = await joinLive(testBridge)
  const picture = { type: 'image', ...PICTURE }
  const sound = { type: 'audio', data: Buffer.alloc(320).toString('base64') }
  const refused = [
    [{ type: 'text', text: 'x'.repeat(101) }, 'too-large'],
    [{ type: 'text', text: ' \n ' }, 'bad-request'],
    [{ ...picture, mimeType: 'image/svg+xml' }, 'bad-request'],
    [{ ...picture, mimeType: 'image/x-icon' }, 'bad-request'],
    [{ ...sound, mimeType: 'text/html' }, 'bad-request'],
    [{ ...sound, mimeType: 'audio/pcm\r\nx: y' }, 'bad-request'],
    [{ ...sound, mimeType: 'image/png' }, 'bad-request'],
  ] as const
  for (const [index, [frame, code]] of refused.entries()) {
    client.send({ ...frame, id: 'chat-1' })
    await client.next(() => framesOf(client, 'refused').length === index + 1)
    const answer = framesOf(client, 'refused').at(-1)
    expect([frame, answer?.['frame'], answer?.['code']]).toEqual([frame, frame.type, code])
  }
  expect(testBridge.emulator.live.sessions).toHaveLength(0)
  // Exactly the limit.
  const data = Buffer.alloc(100).toString('base64')
  client.send({ ...picture, mimeType: 'IMAGE/PNG', data, id: 'chat-1' })
  const session = await testBridge.emulator.live.nextSession()
  await expect.poll(() => JSON.stringify(session.received)).toContain('image/png')
})

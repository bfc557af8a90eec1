import { setTimeout as delay } from 'node:timers/promises'

import { expect, onTestFinished, test, vi } from 'vitest'

import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import type { Chunk } from '../../src/protocol/chunk.ts'
import { foldChunks } from '../../src/protocol/fold-chunks.ts'
import { assistant as createAssistant, defer, tool } from '../support/agents.ts'
import { textParts } from './support/conversation.ts'
import { speak } from './support/voice.ts'
import {
  asked,
  chunkOf,
  framesOf,
  joinLive,
  lastSession,
  nextUnasked,
  openLiveTestBridge,
  whole,
  finishOf,
} from './support/live-test-bridge.ts'
import { allClosed, memoryOf, openSockets } from './support/reconnecting-run.ts'

async function sayBySse(testBridge: TestBridge, text: string, id = 'chat-1'): Promise<void> {
  const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
  expect(await testBridge.page().post({ id, messages: [message] })).toMatchObject({ status: 200 })
}

const look = tool('look', () => ({ seen: 'a whale' }))

test('[LV15] a live conversation knows the turns over SSE', async () => {
  await using testBridge = await openLiveTestBridge()
  await sayBySse(testBridge, 'My name is Hanako. [[say Noted.]]')
  await using client = await joinLive(testBridge)
  client.say('[[say Hello.]]')
  await whole(client)
  const memory = memoryOf(lastSession(testBridge)).join('\n')
  expect(memory).toContain('My name is Hanako.')
  expect(memory).toContain('Noted.')
})

test('[LV15] turns over SSE know the live messages, speech and calls', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true, tools: () => [look] })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  client.say('[[call look {}]] [[then]] [[say I saw it.]]')
  await whole(client)
  testBridge.emulator.live.queueTranscript('I live in Kyoto. [[say Kyoto it is.]]')
  speak(client)
  await whole(client, await nextUnasked(client))
  await sayBySse(testBridge, '[[say And now by SSE.]]')
  expect(testBridge.lastPrompt).toContain('a whale')
  expect(testBridge.lastPrompt).toContain('I saw it.')
  expect(testBridge.lastPrompt).toContain('I live in Kyoto.')
  expect(testBridge.lastPrompt).toContain('Kyoto it is.')
})

test('[LV15] an open conversation learns of messages sent elsewhere', async () => {
  await using testBridge = await openLiveTestBridge()
  await using client = await joinLive(testBridge)
  client.say('[[say One.]]', 'r1')
  await whole(client, 'r1')
  await sayBySse(testBridge, 'My cat is Tama. [[say Two.]]')
  client.say('[[say Three.]]', 'r3')
  await whole(client, 'r3')
  const memory = memoryOf(lastSession(testBridge)).join('\n')
  expect(memory).toContain('Tama')
  expect(openSockets(testBridge.emulator)).toBe(1)
})

test('[LV16] the stored conversation equals the streamed one: same messages, parts and ids', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL, tools: () => [look] })
  await using client = await joinLive(testBridge)
  client.say('[[say Let me look.]] [[call look {}]] [[then]] [[say A whale.]]', 'r1')
  await whole(client, 'r1')
  const [, reply] = await testBridge.page().messages()
  const start = client.chunks('r1')[0]
  expect(reply?.id).toBe(start?.['messageId'])
  expect(reply?.parts.map(({ type }) => type)).toEqual([
    'step-start',
    'text',
    'tool-look',
    'step-start',
    'text',
  ])
  await using again = await joinLive(testBridge)
  expect(await textParts(testBridge)).toEqual([
    ['user', '[[say Let me look.]] [[call look {}]] [[then]] [[say A whale.]]'],
    ['assistant', 'Let me look.A whale.'],
  ])
  expect(framesOf(again, 'refused')).toEqual([])
})

test('[LV16] speech before a call is streamed and stored once, and before the call', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true, tools: () => [look] })
  await using client = await joinLive(testBridge)
  client.say('[[say Let me look.]] [[call look {}]] [[then]] [[say A whale.]]', 'r1')
  await whole(client, 'r1')
  const streamed = client
    .chunks('r1')
    .filter(({ type }) => type === 'text-delta' || type === 'tool-input-available')
    .map(({ delta, toolName }) => delta ?? toolName)
  expect(streamed.join('|').replaceAll(' |', ' ')).toBe('Let me look.|look|A whale.')
  const [, reply] = await testBridge.page().messages()
  const stored = reply?.parts.flatMap(({ type, text }) =>
    type === 'step-start' ? [] : (text ?? type),
  )
  expect(stored).toEqual(['Let me look.', 'tool-look', 'A whale.'])
  // Both have the same metadata, with all audio before and after the call.
  const { messageMetadata } = finishOf(client) as { messageMetadata?: { audio?: unknown } }
  expect(messageMetadata?.audio).toBeDefined()
  expect(reply?.metadata).toMatchObject({ audio: messageMetadata?.audio })
})

/** The parts of a reply as a client has them that read its stream. */
function streamedParts(client: SocketClient, requestId = 'r1') {
  return foldChunks('m', client.chunks(requestId) as unknown as Chunk[]).parts
}

const PICTURES =
  '[[think I look up.]] [[say See.]] [[image red]] [[say Now this.]] [[code print(6 * 7) => 42]] [[image blue]] ' +
  '[[say Look.]] [[call look {}]] [[then]] [[image green]] [[say Done.]]'

test.each([
  ['text', false],
  ['speech', true],
])(
  '[LV16] pictures and code between %s are stored as they were streamed, in order',
  async (_name, spoken) => {
    await using testBridge = await openLiveTestBridge({
      liveModel: FREE_MODEL,
      spoken,
      tools: () => [look],
      agent: (model, tools) =>
        createAssistant(model, {
          tools,
          generateContentConfig: { thinkingConfig: { includeThoughts: true } },
        }),
    })
    await using client = await joinLive(testBridge)
    client.say(PICTURES)
    await whole(client)
    const streamed = streamedParts(client)
    const contents = streamed.flatMap((part) => ('text' in part ? part.text : part.type))
    expect(contents.filter((content) => content !== 'step-start')).toEqual([
      'I look up.',
      'See.',
      'file',
      'Now this.',
      'data-executable-code',
      'data-code-execution-result',
      'file',
      'Look.',
      'tool-look',
      'file',
      'Done.',
    ])
    const [, reply] = await testBridge.page().messages()
    expect(reply?.parts).toEqual(streamed)

    // The model outside the live session knows the pictures, and a new live session knows that there were some.
    await sayBySse(testBridge, '[[say By SSE.]]')
    const pictures = streamed.flatMap((part) => (part.type === 'file' ? part.url : []))
    for (const url of pictures) expect(testBridge.lastPrompt).toContain(url.split(',')[1])
    client.say('[[say Live again.]]', 'r2')
    await whole(client, 'r2')
    const memory = memoryOf(lastSession(testBridge)).join('\n')
    expect(memory.match(/\[sent image\/png\]/g)).toHaveLength(3)
    const later = await testBridge.page().messages()
    expect(later[1]).toEqual(reply)
  },
)

const isTurnComplete = ({ serverContent }: Record<string, unknown>): boolean =>
  typeof serverContent === 'object' && serverContent !== null && 'turnComplete' in serverContent

test('[LV16] one message of the model may hold text, a picture and a call', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL, tools: () => [look] })
  await using client = await joinLive(testBridge)
  client.say('[[say One.]] [[wait gate]] [[say Four.]]')
  await client.untilText('One.')
  const inlineData = { mimeType: 'image/png', data: 'iVBORw0KGgo=' }
  const parts = [{ text: 'Two.' }, { inlineData }, { text: 'Three.' }]
  const functionCalls = [{ id: 'c1', name: 'look', args: {} }]
  const session = lastSession(testBridge)
  session.send({ serverContent: { modelTurn: { role: 'model', parts } } })
  const last = { modelTurn: { role: 'model', parts: [{ text: 'Look.' }] } }
  session.send({ serverContent: last, toolCall: { functionCalls } })
  await chunkOf(client, 'tool-output-available')
  testBridge.emulator.release('gate')
  await session.waitForSent(isTurnComplete)
  // The emulator does not know the call, so it does not reply to the result.
  session.send({ serverContent: { turnComplete: true } })
  await whole(client)
  const streamed = streamedParts(client)
  const contents = streamed.flatMap((part) => ('text' in part ? part.text : part.type))
  expect(contents.filter((content) => content !== 'step-start')).toEqual([
    'One.Two.',
    'file',
    'Three.Look.',
    'tool-look',
    'Four.',
  ])
  const [, reply] = await testBridge.page().messages()
  expect(reply?.parts).toEqual(streamed)
})

test('[LV17] a reply can be regenerated', async () => {
  await using testBridge = await openLiveTestBridge()
  await using client = await joinLive(testBridge)
  client.say('[[say One.]]', 'r1')
  await whole(client, 'r1')
  client.say('[[say Two.]]', 'r2')
  await whole(client, 'r2')
  const messages = await testBridge.page().messages()
  const last = messages.at(-1)
  client.send({
    type: 'send',
    requestId: 'r3',
    id: 'chat-1',
    trigger: 'regenerate-message',
    messageId: last?.id,
    messages: messages.slice(0, 3),
  })
  expect(await whole(client, 'r3')).toBe('Two.')
  const after = await testBridge.page().messages()
  expect(after).toHaveLength(4)
  expect(after.at(-1)?.id).not.toBe(last?.id)
  // The model does not know the removed messages.
  const memory = memoryOf(lastSession(testBridge))
  expect(memory.filter((line) => line.includes('Two.') && line.startsWith('model'))).toHaveLength(1)
})

test('[LV17] a chat is not rewound while a turn over SSE runs in it', async () => {
  const called = defer()
  const gate = defer()
  const slow = tool('slow', async () => {
    called.resolve()
    await gate.promise
    return { done: true }
  })
  await using testBridge = await openLiveTestBridge({ tools: () => [slow] })
  await using client = await joinLive(testBridge)
  client.say('[[say One.]]', 'r1')
  await whole(client, 'r1')
  const messages = await testBridge.page().messages()
  const elsewhere = sayBySse(testBridge, '[[call slow {}]] [[then]] [[say Slow.]]')
  await called.promise
  const trigger = 'regenerate-message'
  const [messageId, id] = [messages.at(-1)?.id, 'chat-1']
  // A turn that is stopped waits for its tools for one second. That second does not pass before the messages are read.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  client.send({
    type: 'send',
    requestId: 'r2',
    id,
    trigger,
    messageId,
    messages: messages.slice(0, 1),
  })
  // The rewind first ends the conversation, and then waits for the tool of the other turn.
  await allClosed(testBridge.emulator)
  await client.sync()
  expect(await testBridge.page().messages()).toHaveLength(3)
  vi.useRealTimers()
  gate.resolve()
  await elsewhere
  expect(await whole(client, 'r2')).toBe('One.')
  expect(await textParts(testBridge)).toEqual([
    ['user', '[[say One.]]'],
    ['assistant', 'One.'],
  ])
  expect(testBridge.errors).toEqual([])
})

test('[LV170] a call that is removed while it runs stores no result', async () => {
  const called = defer()
  const gate = defer()
  const ended = defer()
  let calls = 0
  const slow = tool('slow', async () => {
    calls += 1
    if (calls > 1) return { done: true }
    called.resolve()
    await gate.promise
    ended.resolve()
    return { late: true }
  })
  await using testBridge = await openLiveTestBridge({ tools: () => [slow] })
  await using client = await joinLive(testBridge)
  const id = 'chat-1'
  const text = '[[call slow {}]] [[then]] [[say Done.]]'
  const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text }] }]
  client.send({ type: 'send', requestId: 'r1', id, trigger: 'submit-message', messages })
  await called.promise
  client.send({ type: 'send', requestId: 'r2', id, trigger: 'regenerate-message', messages })
  expect(await whole(client, 'r2')).toBe('Done.')
  gate.resolve()
  await ended.promise
  client.say('[[say Next.]]', 'r3')
  expect(await whole(client, 'r3')).toBe('Next.')
  const key = { appName: 'adk-stream-protocol', userId: 'hanako', sessionId: id }
  const session = await testBridge.store.sessions.getSession(key)
  const parts = session?.events.flatMap(({ content }) => content?.parts ?? []) ?? []
  const made = parts.flatMap(({ functionCall }) => functionCall?.id ?? [])
  const answered = parts.flatMap(({ functionResponse }) => functionResponse?.id ?? [])
  expect(made).toHaveLength(1)
  expect(answered).toEqual(made)
  expect(JSON.stringify(await testBridge.page().messages())).not.toContain('late')
  expect(testBridge.errors).toEqual([])
})

test('[LV18] deleting a chat ends its conversation', async () => {
  await using testBridge = await openLiveTestBridge()
  await using client = await joinLive(testBridge)
  client.say('[[say One.]]', 'r1')
  await whole(client, 'r1')
  expect(await testBridge.page().delete()).toMatchObject({ status: 204 })
  await allClosed(testBridge.emulator)
  expect(await testBridge.page().messages()).toEqual([])
  client.say('[[say Anew.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Anew.')
  expect(memoryOf(lastSession(testBridge)).join()).not.toContain('One.')
  expect(await textParts(testBridge)).toEqual([
    ['user', '[[say Anew.]]'],
    ['assistant', 'Anew.'],
  ])
})

test('[LV19] a conversation continues after the client has lost its connection', async () => {
  await using testBridge = await openLiveTestBridge()
  const client = await joinLive(testBridge)
  client.say('[[say One.]] [[wait gate]] [[say Two.]]')
  await client.untilText('One.')
  await client[Symbol.asyncDispose]()
  await using back = await joinLive(testBridge)
  back.resume('again')
  await back.untilText('One.', 'again')
  testBridge.emulator.release('gate')
  expect(await whole(back, 'again')).toBe('One.Two.')
  expect(testBridge.emulator.live.sessions).toHaveLength(1)
})

test('[LV19] a conversation closes if no client returns in time', async () => {
  await using testBridge = await openLiveTestBridge({ live: { graceMs: 30 } })
  const client = await joinLive(testBridge)
  client.say('[[say One.]]')
  await whole(client)
  expect(openSockets(testBridge.emulator)).toBe(1)
  await client[Symbol.asyncDispose]()
  await allClosed(testBridge.emulator)
  await using back = await joinLive(testBridge)
  back.say('[[say Two.]]', 'r2')
  expect(await whole(back, 'r2')).toBe('Two.')
  expect(memoryOf(lastSession(testBridge)).join()).toContain('One.')
})

test('[LV19] closing the bridge leaves no connection open', async () => {
  const testBridge = await openLiveTestBridge()
  const { emulator } = testBridge
  await using client = await joinLive(testBridge)
  for (const id of ['a', 'b', 'c']) {
    client.say('[[say One.]]', id, `chat-${id}`)
    await whole(client, id)
  }
  expect(openSockets(emulator)).toBe(3)
  await testBridge[Symbol.asyncDispose]()
  expect(openSockets(emulator)).toBe(0)
})

const ENDINGS = {
  'the client’s reconnect': async () => undefined,
  'the end of the conversation': async (testBridge: TestBridge) => allClosed(testBridge.emulator),
  'a restart of the server': async (testBridge: TestBridge) => testBridge.restart(),
}

/** Methods of approval. Each returns whether the decision was accepted. */
const WAYS = {
  HTTP: async (testBridge: TestBridge, _: SocketClient, approvalId: string) =>
    (await testBridge.page().decide(approvalId, { approved: true })).status === 200,
  socket: async (_: TestBridge, client: SocketClient, approvalId: string) => {
    client.send({ type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId, approved: true })
    return (await client.nextOf('decided'))['ok'] === true
  },
}

for (const [name, end] of Object.entries(ENDINGS)) {
  for (const way of ['HTTP', 'socket'] as const) {
    test(`[LV20] an approval outlives ${name}; decided by ${way}, the call runs once and its message continues`, async () => {
      const graceMs = name === 'the end of the conversation' ? 30 : 60_000
      await using testBridge = await openLiveTestBridge({
        live: { graceMs, approvalDeadlineMs: 60_000 },
      })
      const client = await joinLive(testBridge)
      client.say(`${callPayment(50)} [[then]] [[say Paid.]]`)
      await whole(client)
      const [approvalId = ''] = asked(client)
      await client[Symbol.asyncDispose]()
      await end(testBridge)
      await using back = await joinLive(testBridge)
      expect(await WAYS[way](testBridge, back, approvalId)).toBe(true)
      await testBridge
        .page()
        .untilMessages((messages) => JSON.stringify(messages[1]).includes('Paid.'))
      expect(testBridge.wallet.payments).toHaveLength(1)
      expect(await testBridge.page().messages()).toHaveLength(2)
      expect(await testBridge.page().history(approvalId)).toEqual([
        'requested',
        'approved',
        'started',
        'succeeded',
      ])
    })
  }
}

test('[LV32] the outcome of a running approved call is recorded before the bridge closes', async () => {
  const started = defer()
  const closing = defer()
  const before = async (): Promise<void> => {
    started.resolve()
    await closing.promise
    // The call takes some time.
    await delay(200)
  }
  await using testBridge = await openLiveTestBridge({
    tools: (wallet) => [paymentTool(wallet, { before })],
  })
  await using client = await joinLive(testBridge)
  client.say(callPayment(50))
  await whole(client)
  const [approvalId = ''] = asked(client)
  await testBridge.page().decide(approvalId, { approved: true })
  await started.promise
  const { ended } = lastSession(testBridge)
  const restarted = testBridge.restart()
  await ended
  closing.resolve()
  await restarted
  expect(testBridge.wallet.payments).toHaveLength(1)
  expect(await testBridge.page().history(approvalId)).toEqual([
    'requested',
    'approved',
    'started',
    'succeeded',
  ])
  const [, answer] = await testBridge.page().messages()
  expect(JSON.stringify(answer)).toContain('"balance":950')
})

test('[LV32] a call that does not end does not prevent the bridge from closing', async () => {
  const started = defer()
  const before = async (): Promise<void> => {
    started.resolve()
    await defer().promise
  }
  const testBridge = await openLiveTestBridge({
    tools: (wallet) => [paymentTool(wallet, { before })],
  })
  await using client = await joinLive(testBridge)
  client.say(callPayment(50))
  await whole(client)
  await testBridge.page().decide(asked(client)[0] ?? '', { approved: true })
  await started.promise
  // A bridge that waits for the call would not be closed within the time of a test.
  await expect(testBridge[Symbol.asyncDispose]()).resolves.toBeUndefined()
})

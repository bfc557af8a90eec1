import { expect, test } from 'vitest'

import { StoreError } from '../../src/store/store-error.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { FREE_MODEL } from '../approvals/support/test-bridge.ts'
import { toolParts } from '../support/chat-probe.ts'
import { textParts } from './support/conversation.ts'
import { memoryOf, openSockets } from './support/reconnecting-run.ts'
import {
  chunkOf,
  faultsOf,
  finishOf,
  framesOf,
  joinLive,
  lastSession,
  openLiveTestBridge,
  unasked,
  untilAsked,
  whole,
} from './support/live-test-bridge.ts'

test('[LV21] an announced end of a connection leaves no trace in the reply', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  client.say('[[say One.]] [[wait gate]] [[say Two.]]', 'r1')
  await client.untilText('One.')
  lastSession(testBridge).goAway(60_000)
  testBridge.emulator.release('gate')
  expect(await whole(client, 'r1')).toBe('One.Two.')
  client.say('[[say Three.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Three.')
  expect(testBridge.emulator.live.sessions).toHaveLength(2)
  expect(openSockets(testBridge.emulator)).toBe(1)
})

test('[LV22] a reply that is cut off starts again in the same message', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say('[[say One.]] [[wait gate]] [[say Two.]]', 'r1')
  await client.untilText('One.')
  lastSession(testBridge).drop()
  await client.nextOf('interrupted')
  testBridge.emulator.release('gate')
  expect(await whole(client, 'r1')).toBe('One.Two.')
  expect(framesOf(client, 'interrupted')).toHaveLength(1)
  expect(unasked(client)).toEqual([])
  expect(await faultsOf(client, 'r1')).toEqual([])
  const statuses = framesOf(client, 'status').map(({ status }) => status)
  expect(statuses.slice(-3)).toEqual(['open', 'reconnecting', 'open'])
  client.say('[[say Three.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Three.')
  expect(await textParts(testBridge)).toEqual([
    ['user', '[[say One.]] [[wait gate]] [[say Two.]]'],
    ['assistant', 'One.Two.'],
    ['user', '[[say Three.]]'],
    ['assistant', 'Three.'],
  ])
})

test('[LV1081] output that nobody asked for belongs to the last message, not to one of the person', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say('[[say One.]]', 'r1')
  expect(await whole(client, 'r1')).toBe('One.')
  const session = lastSession(testBridge)
  const parts = [{ text: 'By the way.' }]
  session.send({ serverContent: { modelTurn: { role: 'model', parts } } })
  session.send({ serverContent: { turnComplete: true } })
  await testBridge.page().untilMessages(([, reply]) => JSON.stringify(reply).includes('By the'))
  client.say('[[say Two.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Two.')
  expect(framesOf(client, 'user-message')).toEqual([])
  expect(await textParts(testBridge)).toEqual([
    ['user', '[[say One.]]'],
    ['assistant', 'One.By the way.'],
    ['user', '[[say Two.]]'],
    ['assistant', 'Two.'],
  ])
})

test('[LV21] ten announced ends in one conversation leave no trace', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  for (let turn = 0; turn < 10; turn += 1) {
    client.say(`[[say Answer ${turn}.]] [[go-away 10000]]`, `r${turn}`)
    expect(await whole(client, `r${turn}`)).toBe(`Answer ${turn}.`)
  }
  client.say('[[say Last.]]', 'last')
  expect(await whole(client, 'last')).toBe('Last.')
  expect(memoryOf(lastSession(testBridge)).join()).toContain('Answer 0.')
  expect(await testBridge.page().messages()).toHaveLength(22)
  expect(testBridge.emulator.live.sessions.length).toBeGreaterThanOrEqual(10)
})

const MODELS = [FREE_MODEL, 'gemini-3.1-flash-live-preview', 'gemini-3.8-live']

test.each(MODELS.flatMap((model) => ['', 'Let me see. '].map((before) => ({ model, before }))))(
  '[LV23] the reply after a call of a tool that does not exist belongs to its message: $model, after "$before"',
  async ({ model: liveModel, before }) => {
    await using testBridge = await openLiveTestBridge({ liveModel })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    const said = before && `[[say ${before}]]`
    client.say(`${said}[[call nonsense {"a":1}]] [[then]] [[say Sorry.]]`, 'r1')
    expect(await whole(client, 'r1')).toBe(`${before.trim()}Sorry.`)
    client.say('[[say Two.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('Two.')
    expect(unasked(client)).toEqual([])
    expect(framesOf(client, 'user-message')).toEqual([])
    expect((await textParts(testBridge)).map(([role]) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
    ])
  },
)

test.each([
  ['SAFETY', 'content-filter', 'model-blocked'],
  ['RESPONSE_REJECTED', 'content-filter', 'model-blocked'],
  ['MAX_TOKENS', 'length', undefined],
  ['MALFORMED_FUNCTION_CALL', 'error', 'model-mistake'],
  ['A_REASON_OF_NEXT_YEAR', 'other', 'model-mistake'],
  ['STOP', 'stop', 'model-mistake'],
] as const)(
  '[CH8] [LV1080] a live reply that ends with %s is reported as over SSE, and after a reload',
  async (reason, finishReason, code) => {
    await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
    await using client = await joinLive(testBridge)
    client.say(`[[say So far]][[finish ${reason}]]`, 'r1')
    expect(await whole(client, 'r1')).toBe('So far')
    expect(finishOf(client, 'r1')).toMatchObject({ finishReason })
    client.say(`[[finish ${reason}]]`, 'r2')
    await client.nextOf('end', 'r2')
    const failed = client.chunks('r2').find(({ type }) => type === 'message-metadata')
    const { error } = (failed?.['messageMetadata'] ?? {}) as { error?: { code: string } }
    expect(error?.code).toBe(code)
    client.say('[[say Next.]]', 'r3')
    expect(await whole(client, 'r3')).toBe('Next.')
    const stored = await testBridge.page().messages()
    expect(stored.map(({ role }) => role).join()).toBe(
      'user,assistant,user,assistant,user,assistant',
    )
    expect(stored[1]?.metadata ?? {}).toMatchObject(reason === 'STOP' ? {} : { finishReason })
    expect(stored[3]?.metadata ?? {}).toMatchObject(code ? { error: { code } } : { finishReason })
  },
)

test.each([
  [1007, 'model-refused'],
  [1008, 'model-refused'],
])(
  '[LV24] a connection that the model closes with %i is an error of the turn with the code %s',
  async (code, expected) => {
    await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
    await using client = await joinLive(testBridge)
    client.say(`[[say One.]] [[close ${code} secret reason]]`, 'r1')
    await client.nextOf('end', 'r1')
    expect(await chunkOf(client, 'error', 'r1')).toBeDefined()
    const metadata = client.chunks('r1').find(({ type }) => type === 'message-metadata')
    expect(metadata).toMatchObject({ messageMetadata: { error: { code: expected } } })
    expect(JSON.stringify(client.frames)).not.toContain('secret reason')
    client.say('[[say Two.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('Two.')
  },
)

test('[LV24] a model that fails each time is an error of the turn', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  client.say('[[close 1011 broken]]', 'r1')
  await client.nextOf('end', 'r1')
  const metadata = client.chunks('r1').find(({ type }) => type === 'message-metadata')
  expect(metadata).toMatchObject({ messageMetadata: { error: { code: 'model-unavailable' } } })
  client.say('[[say Two.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Two.')
})

test.each([
  ['in sound', FREE_MODEL, true],
  ['in writing', FREE_MODEL, false],
  ['in sound, by a model that waits for its calls', 'gemini-3.1-flash-live-preview', true],
])(
  '[LV24] a model that fails during each reply, %s: the next message is not affected',
  async (_how, liveModel, spoken) => {
    await using testBridge = await openLiveTestBridge({ liveModel, spoken })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1', audio: 'none' })
    const script = '[[say This breaks off.]][[close 1011 broken]]'
    client.say(script, 'r1')
    await client.nextOf('end', 'r1')
    const metadata = client.chunks('r1').find(({ type }) => type === 'message-metadata')
    expect(metadata).toMatchObject({ messageMetadata: { error: { code: 'model-unavailable' } } })
    client.say('[[say Two.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('Two.')
    expect(unasked(client)).toEqual([])
    expect(framesOf(client, 'user-message')).toEqual([])
    expect(await textParts(testBridge)).toEqual([
      ['user', script],
      ['assistant', 'This breaks off.'],
      ['user', '[[say Two.]]'],
      ['assistant', 'Two.'],
    ])
  },
)

test.each([
  // Google truncates a close reason after 123 bytes, and so drops the seconds.
  ['[[fail 429 retry=26]]', undefined],
  ['[[close 1011 RESOURCE_EXHAUSTED: Please retry in 25.2s.]]', 26],
])(
  '[LV24] an exhausted quota is reported at once, without another attempt: %s',
  async (script, retryAfterSeconds) => {
    await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
    await using client = await joinLive(testBridge)
    client.say(script, 'r1')
    await client.nextOf('end', 'r1')
    const metadata = client.chunks('r1').find(({ type }) => type === 'message-metadata')
    expect(metadata?.['messageMetadata']).toEqual({
      error: {
        code: 'model-rate-limited',
        message: 'The model is receiving too many requests. Try again later.',
        ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      },
    })
    expect(testBridge.emulator.live.sessions).toHaveLength(1)
    client.say('[[say Two.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('Two.')
  },
)

test.each([
  ['without any text', '[[fail 429 retry=26]]', 'model-rate-limited'],
  ['after some text', '[[say One.]] [[close 1007 secret reason]]', 'model-refused'],
])('[LV24] a reload shows that a reply failed, %s', async (_when, script, code) => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  client.say(script, 'r1')
  await client.nextOf('end', 'r1')
  const streamed = client.chunks('r1').find(({ type }) => type === 'message-metadata')
  const { error } = (streamed?.['messageMetadata'] ?? {}) as { error?: unknown }
  expect(error).toMatchObject({ code })
  const stored = await testBridge.page().messages()
  expect(stored.map(({ role }) => role)).toEqual(['user', 'assistant'])
  expect(stored[1]?.metadata).toMatchObject({ error })
  expect(JSON.stringify(stored[1])).not.toContain('secret reason')
  client.say('[[say Two.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Two.')
  const after = await testBridge.page().messages()
  expect(after).toHaveLength(4)
  expect(after[1]?.metadata).toEqual(stored[1]?.metadata)
  expect(after[3]?.metadata).not.toHaveProperty('error')
})

test('[LV24] an unreachable model is an error of the request', async () => {
  await using testBridge = await openLiveTestBridge()
  await testBridge.emulator.close()
  await using client = await joinLive(testBridge)
  client.say('[[say One.]]', 'r1')
  expect(await client.nextOf('error', 'r1')).toMatchObject({ code: 'model-unavailable' })
  client.send({ type: 'watch', id: 'chat-2' })
  await client.next(
    ({ type, id, status }) => type === 'status' && id === 'chat-2' && status === 'closed',
  )
})

function userMessage(text: string) {
  return { id: 'u1', role: 'user', parts: [{ type: 'text', text }] }
}

test.each([
  ['another reply to it is requested', 'regenerate-message', undefined, '[[say One.]]'],
  ['it is edited', 'submit-message', 'u1', '[[say Other.]]'],
])(
  '[TU1990] a message stays stored if the model cannot be reached when %s',
  async (_when, trigger, messageId, text) => {
    await using testBridge = await openLiveTestBridge()
    await using client = await joinLive(testBridge)
    client.send({
      type: 'send',
      requestId: 'r1',
      id: 'chat-1',
      messages: [userMessage('[[say One.]]')],
    })
    await whole(client, 'r1')
    await testBridge.emulator.close()
    const messages = [userMessage(text)]
    client.send({ type: 'send', requestId: 'r2', id: 'chat-1', trigger, messageId, messages })
    expect(await client.nextOf('error', 'r2')).toMatchObject({ code: 'model-unavailable' })
    expect(await testBridge.page().messages()).toMatchObject([
      { id: 'u1', parts: [{ text }] },
      { role: 'assistant', metadata: { error: { code: 'model-unavailable' } } },
    ])
  },
)

test('[LV25] a stopped reply ends and is marked as stopped, and later replies are complete', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say('[[say One.]] [[wait gate]] [[say Two.]]', 'r1')
  await client.untilText('One.')
  client.send({ type: 'abort', requestId: 'r1' })
  await lastSession(testBridge).waitForSent((frame) =>
    JSON.stringify(frame).includes('interrupted'),
  )
  await testBridge.page().untilMessages(([, answer]) => JSON.stringify(answer).includes('stopped'))
  client.say('[[say Three.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Three.')
  expect(await textParts(testBridge)).toEqual([
    ['user', '[[say One.]] [[wait gate]] [[say Two.]]'],
    ['assistant', 'One.'],
    ['user', '[[say Three.]]'],
    ['assistant', 'Three.'],
  ])
})

test('[LV25] a stopped reply also ends if the model cannot be interrupted: the rest is discarded', async () => {
  await using testBridge = await openLiveTestBridge()
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say('[[say One.]] [[wait gate]] [[say Two.]]', 'r1')
  await client.untilText('One.')
  client.send({ type: 'abort', requestId: 'r1' })
  await testBridge.page().untilMessages(([, answer]) => JSON.stringify(answer).includes('stopped'))
  testBridge.emulator.release('gate')
  client.say('[[say Three.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Three.')
  expect(unasked(client)).toEqual([])
  expect(finishOf(client, 'r2')).toMatchObject({ finishReason: 'stop' })
})

test('[LV25] `interrupt` ends the model’s speech, and the message is complete', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say('[[say One.]] [[wait gate]] [[say Two.]]', 'r1')
  await client.untilText('One.')
  client.send({ type: 'interrupt', id: 'chat-1' })
  expect(await whole(client, 'r1')).toBe('One.')
  expect(framesOf(client, 'interrupted')).toHaveLength(1)
})

test.each([1, 2])(
  '[LG82] a live payment whose outcome cannot be stored %i times is not reported as failed or unknown',
  async (times) => {
    await using testBridge = await openLiveTestBridge()
    const { approvals } = testBridge.store
    const replace = approvals.replace.bind(approvals)
    let failures = 0
    approvals.replace = async (transition) => {
      if (transition.entry.event.type === 'succeeded' && failures < times) {
        failures += 1
        throw new StoreError('full', 'The disk is full.')
      }
      return replace(transition)
    }
    await using client = await joinLive(testBridge)
    client.say(`${callPayment(50)} [[then]] [[say Done.]]`)
    const [approvalId = ''] = await untilAsked(client)
    const page = testBridge.page()
    expect(await page.decide(approvalId, { approved: true })).toMatchObject({ status: 200 })
    await page.untilMessages(([, reply]) => toolParts(reply)[0]?.state === 'output-available')
    expect(failures).toBe(times)
    expect(JSON.stringify(lastSession(testBridge).received)).not.toContain(
      'could not be carried out',
    )
    expect(await page.history(approvalId)).toEqual([
      'requested',
      'approved',
      'started',
      'succeeded',
    ])
    expect(testBridge.wallet.payments).toHaveLength(1)
  },
)

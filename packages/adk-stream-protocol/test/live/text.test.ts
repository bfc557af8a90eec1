import { expect, test } from 'vitest'

import { defer } from '../../src/shared/async.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { joinLive, nextUnasked, openLiveTestBridge, whole } from './support/live-test-bridge.ts'
import { FREE_MODEL } from '../approvals/support/test-bridge.ts'
import { assistant } from '../support/agents.ts'

/** Opens a store that calls `onAppended` when it has stored an event, and does not return before `goesOn` resolves. */
async function openHeldStore(onAppended: () => void, goesOn: Promise<void>): Promise<Store> {
  const store = await openSqliteStore({ path: ':memory:' })
  const appendEvent = store.sessions.appendEvent.bind(store.sessions)
  store.sessions.appendEvent = async (request) => {
    const appended = await appendEvent(request)
    onAppended()
    await goesOn
    return appended
  }
  return store
}

function createFrame(requestId: string, text: string, trigger: string): object {
  const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }]
  return { type: 'send', requestId, id: 'chat-1', trigger, messages }
}

test('[LV1] a conversation is one connection to the model, with one message per reply', async () => {
  await using testBridge = await openLiveTestBridge()
  await using client = await joinLive(testBridge)
  client.say('[[say One.]]', 'r1')
  expect(await whole(client, 'r1')).toBe('One.')
  client.say('[[say Two.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Two.')
  expect(testBridge.emulator.live.sessions).toHaveLength(1)
  expect(await client.faults('r1')).toEqual([])
  expect(await client.faults('r2')).toEqual([])
  const messages = await testBridge.page().messages()
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
})

test('[TU901] a message that is sent again to a live session is not sent to the model again', async () => {
  await using testBridge = await openLiveTestBridge()
  await using client = await joinLive(testBridge)
  const parts = [{ type: 'text', text: '[[say One.]] [[wait more]] [[say Two.]]' }]
  const messages = [{ id: 'm1', role: 'user', parts }]
  const send = (requestId: string): void =>
    client.send({ type: 'send', requestId, id: 'chat-1', trigger: 'submit-message', messages })
  send('r1')
  await client.untilText('One.')
  send('r2')
  testBridge.emulator.release('more')
  const reply = await whole(client, 'r1')
  expect(reply).toContain('Two.')
  expect(await whole(client, 'r2')).toBe(reply)
  send('r3')
  expect(await whole(client, 'r3')).toBe(reply)
  const stored = await testBridge.page().messages()
  expect(stored.map(({ role }) => role)).toEqual(['user', 'assistant'])
})

test.each([
  { way: 'edited', text: '[[say Two.]]', reply: 'Two.', isStopped: false },
  { way: 'sent again with another text', text: '[[say Two.]]', reply: 'Two.', isStopped: false },
  { way: 'regenerated', text: '[[say One.]]', reply: 'One.', isStopped: false },
  { way: 'stopped and regenerated', text: '[[say One.]]', reply: 'One.', isStopped: true },
])(
  '[TU901] a message that is $way while its turn is being opened gets a reply of its own',
  async ({ way, text, reply, isStopped }) => {
    const [isStored, isGivenAgain] = [defer(), defer()]
    const openStore = () => openHeldStore(isStored.resolve, isGivenAgain.promise)
    await using testBridge = await openLiveTestBridge({ openStore })
    await using client = await joinLive(testBridge)
    await using other = await joinLive(testBridge)
    client.send(createFrame('r1', '[[say One.]]', 'submit-message'))
    await isStored.promise
    if (isStopped) client.send({ type: 'abort', requestId: 'r1', stop: true })
    await client.sync()
    const trigger = way.endsWith('regenerated') ? 'regenerate-message' : 'submit-message'
    const named = way === 'edited' ? { messageId: 'm1' } : {}
    other.send({ ...createFrame('r2', text, trigger), ...named })
    await other.sync()
    isGivenAgain.resolve()
    expect(await whole(other, 'r2')).toBe(reply)
    const first = client.chunks('r1').find(({ type }) => type === 'start')
    const second = other.chunks('r2').find(({ type }) => type === 'start')
    expect(second?.['messageId']).not.toBe(first?.['messageId'])
    const stored = await testBridge.page().messages()
    expect(stored.at(-2)).toMatchObject({ role: 'user', parts: [{ text }] })
    expect(stored.at(-1)?.id).toBe(second?.['messageId'])
  },
)

test('[CV1220] a stored user message whose turn is being opened is shown as running', async () => {
  const [isStored, isShown] = [defer(), defer()]
  const openStore = () => openHeldStore(isStored.resolve, isShown.promise)
  await using testBridge = await openLiveTestBridge({ openStore })
  await using client = await joinLive(testBridge)
  client.say('[[say One.]]', 'r1')
  await isStored.promise
  const headers = { 'x-api-key': 'hanako' }
  const response = await fetch(`${testBridge.url}/chats/chat-1/messages`, { headers })
  expect(await response.json()).toMatchObject({ messages: [{ role: 'user' }], running: true })
  isShown.resolve()
  expect(await whole(client, 'r1')).toBe('One.')
})

test('[LV2] a message during the model’s reply interrupts it, and each reply has its own message', async () => {
  await using testBridge = await openLiveTestBridge({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say('[[say One.]] [[wait never]] [[say More.]]', 'r1')
  await client.untilText('One.')
  client.send({ type: 'text', id: 'chat-1', messageId: 'u2', text: '[[say Two.]]' })
  const second = await nextUnasked(client)
  expect(await whole(client, second)).toBe('Two.')
  expect(await whole(client, 'r1')).toBe('One.')
  expect(client.frames.some(({ type }) => type === 'interrupted')).toBe(true)
  const messages = await testBridge.page().messages()
  expect(
    messages.map(({ role, parts }) => [
      role,
      parts
        .filter((p) => p.type === 'text')
        .map((p) => p['text'])
        .join(),
    ]),
  ).toEqual([
    ['user', '[[say One.]] [[wait never]] [[say More.]]'],
    ['assistant', 'One.'],
    ['user', '[[say Two.]]'],
    ['assistant', 'Two.'],
  ])
})

test.each([
  [FREE_MODEL, ['I look up.']],
  ['gemini-3.1-flash-live-preview', ['I look up.']],
  // This model would reject the setup.
  ['gemini-2.0-flash-live-001', []],
])('[LV42] thoughts that the agent requests are streamed by %s', async (liveModel, thoughts) => {
  await using testBridge = await openLiveTestBridge({
    liveModel,
    agent: (model, tools) =>
      assistant(model, {
        tools,
        generateContentConfig: { thinkingConfig: { includeThoughts: true } },
      }),
  })
  await using client = await joinLive(testBridge)
  client.say('[[think I look up.]] [[say It is blue.]]', 'r1')
  expect(await whole(client, 'r1')).toBe('It is blue.')
  const messages = await testBridge.page().messages()
  const parts = messages.flatMap((message) => message.parts)
  expect(parts.flatMap((part) => (part.type === 'reasoning' ? part['text'] : []))).toEqual(thoughts)
})

test('[LV42] thoughts of a speaking model are streamed and stored once, before its speech', async () => {
  await using testBridge = await openLiveTestBridge({
    liveModel: FREE_MODEL,
    spoken: true,
    agent: (model, tools) =>
      assistant(model, {
        tools,
        generateContentConfig: { thinkingConfig: { includeThoughts: true } },
      }),
  })
  await using client = await joinLive(testBridge)
  client.say('[[think I look up.]] [[say It is blue.]]', 'r1')
  expect(await whole(client, 'r1')).toBe('It is blue.')
  const begun = client.chunks('r1').map(({ type }) => type)
  expect(begun.filter((type) => type.endsWith('-start'))).toEqual(['reasoning-start', 'text-start'])
  expect(await client.faults('r1')).toEqual([])
  const [, answer] = await testBridge.page().messages()
  const streamed = answer?.parts.flatMap((part) =>
    'text' in part ? [[part.type, part['text']]] : [],
  )
  expect(streamed).toEqual([
    ['reasoning', 'I look up.'],
    ['text', 'It is blue.'],
  ])
})

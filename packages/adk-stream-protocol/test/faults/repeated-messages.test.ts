import { createEvent, MCPToolset } from '@google/adk'
import { startEmulator } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'

import { writeNotes } from '../../src/agent/events/event-notes.ts'
import { foldChunks } from '../../src/protocol/fold-chunks.ts'
import type { Chunk } from '../../src/protocol/chunk.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { joinLive, openLiveTestBridge, whole } from '../live/support/live-test-bridge.ts'
import { HEADERS, LIVE_MODEL } from '../relay/support/live-pair.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { defer } from '../support/agents.ts'
import { textOf } from '../support/chat-probe.ts'
import { serveHttp } from '../support/mcp-servers.ts'
import { readFrames, type WireChunk } from '../support/wire-rules.ts'
import { makeFolder } from './support/folder.ts'
import { openPair, type Pair } from './support/pair.ts'
import { openPaymentServer, type PaymentServerOptions } from './support/payment-server.ts'
import { Person } from './support/person.ts'

const POLLING = { timeout: 120_000, interval: 20 }
const FULL = new StoreError('full', 'The disk is full.')

function createFrame(requestId: string, text: string) {
  const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }]
  return { type: 'send', requestId, id: 'chat-1', trigger: 'submit-message', messages }
}

/** Sends the message of a chat over HTTP. Returns the chunks of the response. */
async function post(person: Person, text: string): Promise<readonly WireChunk[]> {
  return readFrames(await (await person.begin(text, 'm1')).text()).chunks
}

function textOfChunks(chunks: readonly WireChunk[]): string {
  return chunks.map(({ type, delta }) => (type === 'text-delta' ? String(delta) : '')).join('')
}

function codeOf(chunks: readonly WireChunk[]): unknown {
  expect(chunks.at(-1)).toMatchObject({ type: 'error' })
  return chunks.findLast(({ type }) => type === 'message-metadata')?.['messageMetadata']
}

/** Makes the store fail right after it has stored the first message. */
function failAfterMessage({ sessions }: Store): void {
  const appendEvent = sessions.appendEvent.bind(sessions)
  let hasFailed = false
  sessions.appendEvent = async (request) => {
    const stored = await appendEvent(request)
    if (hasFailed || request.event.author !== 'user') return stored
    hasFailed = true
    throw FULL
  }
}

test('[TU901] a live message after which the store failed ends with `turn-lost` when it is sent again', async () => {
  await using folder = await makeFolder()
  const store = await openSqliteStore({ path: folder.database })
  failAfterMessage(store)
  await using testBridge = await openLiveTestBridge({ openStore: async () => store })
  await using client = await joinLive(testBridge)
  client.send(createFrame('r1', '[[say One.]]'))
  expect(await client.nextOf('error', 'r1')).toMatchObject({ code: 'store-failed' })
  client.send(createFrame('r2', '[[say One.]]'))
  await client.nextOf('end', 'r2')
  expect(codeOf(client.chunks('r2'))).toMatchObject({ error: { code: 'turn-lost' } })
  client.say('[[say Two.]]', 'r3')
  expect(await whole(client, 'r3')).toBe('Two.')
})

test('[TU901] a message whose server crashed before the agent replied ends with `turn-lost` when it is sent again', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  const appName = 'app'
  await using server = await openPaymentServer({ store, effects: folder.effects, appName })
  const person = new Person(server.url)
  const key = { appName, userId: person.user, sessionId: person.chatId }
  const session = await store.sessions.getOrCreateSession(key)
  const content = { role: 'user', parts: [{ text: '[[say One.]]' }] }
  const customMetadata = writeNotes({ messageId: 'reply-1', userMessageId: 'm1' })
  const event = createEvent({ author: 'user', content, customMetadata })
  await store.sessions.appendEvent({ session, event })
  const chunks = await post(person, '[[say One.]]')
  expect(codeOf(chunks)).toMatchObject({ error: { code: 'turn-lost' } })
  expect(server.emulator.requests).toEqual([])
})

test('[TU901] a message whose reply failed ends with the same error when it is sent again', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  failAfterMessage(store)
  await using server = await openPaymentServer({ store, effects: folder.effects })
  const person = new Person(server.url)
  const error = { code: 'store-failed' }
  expect(codeOf(await post(person, '[[say One.]]'))).toMatchObject({ error })
  expect(codeOf(await post(person, '[[say One.]]'))).toMatchObject({ error })
})

test('[TU901] a live message whose turn could not be opened is followed when it is sent again', async () => {
  await using folder = await makeFolder()
  const store = await openSqliteStore({ path: folder.database })
  const { approvals } = store
  await using testBridge = await openLiveTestBridge({ openStore: async () => store })
  await using client = await joinLive(testBridge)
  client.say('[[say Zero.]]', 'r0')
  await whole(client, 'r0')
  const lockChat = approvals.lockChat.bind(approvals)
  let hasFailed = false
  approvals.lockChat = async (...given) => {
    if (hasFailed) return lockChat(...given)
    hasFailed = true
    throw FULL
  }
  const script = '[[wait more]] [[say One.]]'
  client.send(createFrame('r1', script))
  expect(await client.nextOf('error', 'r1')).toMatchObject({ code: 'store-failed' })
  client.send(createFrame('r2', script))
  await client.nextOf('start', 'r2')
  testBridge.emulator.release('more')
  expect(await whole(client, 'r2')).toBe('One.')
})

test('[TU901] a message that is sent to another server before the first one has stored it does not stop its turn', async () => {
  await using folder = await makeFolder()
  const [begun, gate] = [defer(), defer()]
  const openStore = async (): Promise<Store> => {
    const store = await openSqliteStore({ path: folder.database })
    const appendEvent = store.sessions.appendEvent.bind(store.sessions)
    store.sessions.appendEvent = async (request) => {
      begun.resolve()
      await gate.promise
      return appendEvent(request)
    }
    return store
  }
  // A person who loses the connection has time to return.
  await using pair = await openPair({ openStore, disconnectGraceMs: 600_000 })
  const text = '[[say One.]]'
  const lost = await pair.atOne.begin(text, 'm1')
  await begun.promise
  await lost.body?.cancel()
  const again = pair.atTwo.begin(text, 'm1')
  // It has asked the first server what it does with its turn.
  await pair.untilTaken(2)
  gate.resolve()
  expect(textOfChunks(readFrames(await (await again).text()).chunks)).toBe('One.')
  expect((await pair.atTwo.messages()).map(textOf)).toEqual([text, 'One.'])
})

test('[TU901] a live message that another server has stored a moment ago is not lost', async () => {
  await using emulator = await startEmulator()
  await using pair = await openPair({ liveModel: LIVE_MODEL, modelUrl: emulator.baseUrl })
  await using atOne = await SocketClient.open(pair.one.url, { headers: HEADERS })
  await using atTwo = await SocketClient.open(pair.two.url, { headers: HEADERS })
  atOne.say('[[say Zero.]]', 'r0')
  await whole(atOne, 'r0')
  const [opens, goesOn] = [defer(), defer()]
  const lockChat = pair.ofFirst.lockChat.bind(pair.ofFirst)
  pair.ofFirst.lockChat = async (...given) => {
    opens.resolve()
    await goesOn.promise
    return lockChat(...given)
  }
  const listLocked = pair.ofSecond.listLockedByOthers.bind(pair.ofSecond)
  atOne.send(createFrame('r1', '[[say One.]]'))
  await opens.promise
  // The first server opens the turn when the second one has found that the live session is there.
  pair.ofSecond.listLockedByOthers = async (...given) => {
    const listed = await listLocked(...given)
    goesOn.resolve()
    return listed
  }
  atTwo.send(createFrame('r1', '[[say One.]]'))
  expect(await whole(atTwo, 'r1')).toBe('One.')
  expect(await whole(atOne, 'r1')).toBe('One.')
  expect((await pair.atTwo.messages()).map(({ role }) => role)).toHaveLength(4)
})

test('[TU901] a message whose reply was stopped while a tool ran ends as its stored reply when it is sent again', async () => {
  const started = defer()
  const reached = (): Promise<never> => {
    started.resolve()
    return new Promise(() => undefined)
  }
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  await using server = await openPaymentServer({ store, effects: folder.effects, reached })
  const person = new Person(server.url)
  const text = '[[call look {"to": "Hanako", "amount": 50}]]'
  const lost = await person.begin(text, 'm1')
  await started.promise
  await lost.body?.cancel()
  const stored = async () => (await person.messages())[1]
  await expect.poll(stored, POLLING).toMatchObject({ metadata: { stopped: true } })
  const chunks = await post(person, text)
  const reply = await stored()
  expect(foldChunks(reply?.id ?? '', chunks as readonly Chunk[])).toEqual(reply)
})

const CALL = '[[call files_ask {}]][[then]][[say Done.]]'

/** A person at two servers, whose agent has an MCP server that asks two questions during each call. */
async function openAsking(options: Partial<PaymentServerOptions> = {}) {
  const elicit = ['city', 'country'].map((field) => ({
    message: `Which ${field}?`,
    requestedSchema: { type: 'object', properties: { [field]: { type: 'string' } } },
  }))
  const files = await serveHttp([{ name: 'ask', _meta: { elicit } }])
  const tools = [new MCPToolset(files.connection, [], 'files')]
  const pair = await openPair({ tools, elicitation: true, ...options })
  return {
    pair,
    files,
    [Symbol.asyncDispose]: async () => {
      await pair[Symbol.asyncDispose]()
      await files[Symbol.asyncDispose]()
    },
  }
}

/** Resolves with the id of the open question when the conversation shows the given one. */
async function untilAsked({ atOne }: Pair, hint: string): Promise<string> {
  const read = async () => JSON.stringify((await atOne.messages()).at(-1))
  await expect.poll(read, POLLING).toContain(hint)
  return (await atOne.approvals()).find((approval) => approval.hint === hint)?.id ?? ''
}

/** Answers the first question. Resolves with the id of the second one. */
async function answerFirst(pair: Pair): Promise<string> {
  const first = await untilAsked(pair, 'Which city?')
  await pair.atTwo.decide(first, { approved: true, payload: { city: 'Kyoto' } })
  return untilAsked(pair, 'Which country?')
}

/** How a message gets to an open question. Resolves with the id of the question. */
const QUESTIONS: readonly (readonly [string, (pair: Pair) => Promise<string>])[] = [
  ['the first question', (pair) => untilAsked(pair, 'Which city?')],
  ['the second question', answerFirst],
]

describe.each(['the same server', 'another server'])('sent again to %s', (where) => {
  test.each(QUESTIONS)(
    '[TU901] a message with a call that asks is read up to %s',
    async (_name, untilOpen) => {
      await using asking = await openAsking()
      const { pair } = asking
      await post(pair.atOne, CALL)
      const question = await untilOpen(pair)
      const person = where === 'the same server' ? pair.atOne : pair.atTwo
      const chunks = await post(person, CALL)
      const [, reply] = await pair.atTwo.messages()
      expect(foldChunks(reply?.id ?? '', chunks as readonly Chunk[])).toEqual(reply)
      expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'tool-calls' })
      expect((await person.approval(question))?.approval.state).toBe('requested')
    },
  )
})

test('[TU901] a message with an approved call that asks is read up to the question when it is sent again', async () => {
  await using asking = await openAsking({ approvals: { 'files_*': true } })
  const { pair } = asking
  await post(pair.atOne, CALL)
  const question = await approveCall(pair)
  expect(textOfChunks(await post(pair.atOne, CALL))).toBe('')
  expect((await pair.atOne.approval(question))?.approval.state).toBe('requested')
  const second = await answerFirst(pair)
  await post(pair.atOne, CALL)
  await pair.atOne.decide(second, { approved: true, payload: { country: 'Japan' } })
  const reply = async () => textOf((await pair.atOne.messages())[1])
  await expect.poll(reply, POLLING).toBe('Done.')
  expect(asking.files.calls()).toEqual(['ask'])
})

test('[TU901] a message that arrives again after the next one does not stop the question of the next reply', async () => {
  await using asking = await openAsking()
  const { pair } = asking
  await post(pair.atOne, '[[say One.]]')
  await (await pair.atOne.begin(CALL, 'm2')).text()
  const question = await untilAsked(pair, 'Which city?')
  expect(textOfChunks(await post(pair.atOne, '[[say One.]]'))).toBe('One.')
  expect((await pair.atOne.approval(question))?.approval.state).toBe('requested')
})

async function approveCall(pair: Pair): Promise<string> {
  const [approval] = await pair.atOne.approvals()
  await pair.atOne.decide(approval?.id ?? '', { approved: true })
  return untilAsked(pair, 'Which city?')
}

test.each([
  ['an answer', {}, answerFirst],
  ['an approval', { approvals: { 'files_*': true } }, approveCall],
])(
  '[TU1580] a stop that names the user message stops its turn also when it has continued after %s',
  async (_name, options, untilContinued) => {
    await using asking = await openAsking(options)
    const { pair } = asking
    await post(pair.atOne, CALL)
    const question = await untilContinued(pair)
    expect((await pair.atOne.post('/chats/chat-1/stop?messageId=m1', {})).status).toBe(204)
    const state = async () => (await pair.atOne.approval(question))?.approval.state
    await expect.poll(state, POLLING).toBe('cancelled')
  },
)

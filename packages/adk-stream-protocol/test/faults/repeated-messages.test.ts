import { createEvent } from '@google/adk'
import { startEmulator } from 'gemini-emulator'
import { expect, test } from 'vitest'

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
import { readFrames, type WireChunk } from '../support/wire-rules.ts'
import { makeFolder } from './support/folder.ts'
import { openPair } from './support/pair.ts'
import { openPaymentServer } from './support/payment-server.ts'
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

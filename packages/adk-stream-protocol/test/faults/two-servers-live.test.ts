import { describe, expect, test } from 'vitest'

import { BidiClient } from '../bidi/support/bidi-client.ts'
import { whole } from '../live/support/live-test-bridge.ts'
import { beginToSpeak } from '../live/support/voice.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { defer } from '../support/agents.ts'
import { OPEN_RUN_LOCK } from '../../src/locks/lock-names.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { ASK, locatedRequest, locationTool, TOKYO } from '../support/locating.ts'
import { readUntil } from '../support/read-feed.ts'
import { makeFolder } from './support/folder.ts'
import { openPair, type Pair } from './support/pair.ts'
import type { Person } from './support/person.ts'

const HEADERS = { 'x-user': 'hanako' }
const LIVE = { liveModel: 'gemini-3.1-flash-live-preview' }
const PAY = '[[call pay {"to": "花子", "amount": 50}]][[then]][[say All settled.]]'
const LIFE = ['requested', 'approved', 'started', 'succeeded']

interface Asked {
  readonly approvalId: string
  readonly toolCallId: string
  readonly messageId: string
}

/** Opens a live conversation at the first server that waits for a decision. With text frames, the stream stays open. */
async function askHeld({ one }: Pair): Promise<[BidiClient, Asked]> {
  const client = await BidiClient.open(one.url, { headers: HEADERS })
  client.say(PAY)
  await client.untilAsked()
  const { approvalId = '', toolCallId = '' } = client.asked[0] ?? {}
  return [client, { approvalId, toolCallId, messageId: String(client.chunks[0]?.['messageId']) }]
}

/** Opens stores of a database, and keeps them in order: of the pair, of the first server, and of the second one. */
function keepOpened(path: string) {
  const opened: Promise<Store>[] = []
  const openStore = (): Promise<Store> => {
    const store = openSqliteStore({ path })
    opened.push(store)
    return store
  }
  return { opened, openStore }
}

function typesOf(person: Person, approvalId: string): Promise<string[] | undefined> {
  return person.approval(approvalId).then((found) => found?.history.map(({ type }) => type))
}

/** Returns the results of calls that the chat contains. */
async function readResults({ store }: Pair): Promise<unknown[]> {
  const session = await store.sessions.getSession({
    appName: 'adk-stream-protocol',
    userId: 'hanako',
    sessionId: 'chat-1',
  })
  return (session?.events ?? []).flatMap(({ content }) =>
    (content?.parts ?? []).flatMap(({ functionResponse }) => functionResponse?.response ?? []),
  )
}

type FeedEvent = Readonly<Record<string, unknown>>

/** Opens the feed of the chat. Returns an array to which each event is added when it is reported. */
async function openFeed({ url }: Pair['one']): Promise<readonly FeedEvent[]> {
  const response = await fetch(`${url}/chats/chat-1/events`, { headers: HEADERS })
  const events: FeedEvent[] = []
  const collect = (event: FeedEvent): false => (events.push(event), false)
  // The feed is cut off when its server closes.
  void readUntil(response, collect).catch(() => undefined)
  return events
}

function readStates(events: readonly FeedEvent[]): unknown[] {
  return events.flatMap(({ state }) => state ?? [])
}

/** Waits until a feed has reported the whole reply and how the call ended, in either order. */
async function untilReported({ url }: Pair['one'], events: readonly FeedEvent[]): Promise<void> {
  const load = async () => {
    const response = await fetch(`${url}/chats/chat-1/messages`, { headers: HEADERS })
    return (await response.json()) as Readonly<Record<string, unknown>>
  }
  await expect.poll(async () => JSON.stringify(await load())).toContain('All settled.')
  const isCurrent = async () => {
    const { position, running } = await load()
    const last = events.findLast(({ type }) => type === 'stored')
    return running !== true && last?.['position'] === position
  }
  await expect.poll(isCurrent).toBe(true)
  await expect.poll(() => readStates(events)).toContain('succeeded')
}

/** The ways to decide at the second server. Each resolves when the client has received what it waits for. */
const WAYS: readonly {
  readonly name: string
  readonly decide: (pair: Pair, asked: Asked, approved: boolean) => Promise<void>
}[] = [
  {
    name: 'POST /approvals/:id',
    decide: async ({ atTwo }, { approvalId }, approved) => {
      expect(await atTwo.decide(approvalId, { approved })).toMatchObject({ status: 200 })
    },
  },
  {
    name: 'POST /stream',
    decide: async ({ atTwo }, asked, approved) => {
      const { status, body } = await atTwo.answer(asked, { approved })
      expect(status).toBe(200)
      expect(body).toContain('settled.')
      expect(body).toContain(approved ? 'tool-output-available' : 'tool-output-denied')
    },
  },
  {
    name: 'a frame `decide`',
    decide: async ({ two }, { approvalId }, approved) => {
      await using client = await SocketClient.open(two.url, { headers: HEADERS })
      client.send({ type: 'decide', decisionId: 'd', id: 'chat-1', approvalId, approved })
      expect(await client.nextOf('decided')).toMatchObject({ ok: true })
    },
  },
  {
    name: 'text frames',
    decide: async ({ two }, { approvalId }, approved) => {
      await using client = await BidiClient.open(two.url, {
        headers: HEADERS,
        query: '?chatId=chat-1',
      })
      client.confirm(approvalId, approved)
      await client.untilDone()
      expect(client.text).toBe('All settled.')
      expect(client.ofType('start')).toHaveLength(1)
    },
  },
]

describe.each(WAYS)('decided at another server by $name', ({ decide }) => {
  test.each([true, false])(
    '[LV100] a live conversation with a reader continues after a decision at another server; approved: %s',
    async (approved) => {
      await using pair = await openPair(LIVE)
      const [opened, asked] = await askHeld(pair)
      await using client = opened
      await decide(pair, asked, approved)
      await client.untilDone()
      expect(client.text).toBe('All settled.')
      expect(client.ofType('start')).toHaveLength(1)
      expect(client.done).toBe(1)
      expect(pair.effects()).toHaveLength(approved ? 1 : 0)
      // The client may receive the end before the other server can read it.
      await expect
        .poll(() => typesOf(pair.atTwo, asked.approvalId))
        .toEqual(approved ? LIFE : ['requested', 'denied'])
      // The waiting model received the outcome, and no other model was called.
      expect(pair.two.emulator.requests).toEqual([])
      expect(pair.two.emulator.live.sessions).toEqual([])
      await expect
        .poll(async () => toolParts((await pair.atTwo.messages())[1]))
        .toMatchObject([{ state: approved ? 'output-available' : 'output-denied' }])
    },
  )
})

test.each([
  ['while the call runs', false],
  ['after it has run the call', true],
])(
  '[LV100] a client that decides at another server and watches the chat there receives the reply once if the owner is asked %s',
  async (_name, isLate) => {
    await using pair = await openPair(LIVE)
    const [opened, asked] = await askHeld(pair)
    await using held = opened
    const events = await openFeed(pair.two)
    await using client = await BidiClient.open(pair.two.url, {
      headers: HEADERS,
      query: '?chatId=chat-1',
    })
    // The owner reads the decision in the record, whenever it is asked.
    const asks = defer()
    const findLockHolder = pair.ofSecond.findLockHolder.bind(pair.ofSecond)
    pair.ofSecond.findLockHolder = async (chat) => {
      const isDecided = (await pair.ofSecond.get(asked.approvalId))?.state.name !== 'requested'
      if (isDecided && chat.appName.endsWith(OPEN_RUN_LOCK)) await asks.promise
      return findLockHolder(chat)
    }
    if (!isLate) asks.resolve()
    const hearAgain = isLate ? pair.deafen(pair.ofSecond) : undefined
    client.confirm(asked.approvalId, true)
    if (isLate) await held.untilDone()
    asks.resolve()
    await client.untilDone()
    hearAgain?.()
    // The second server has noticed that the message is complete.
    await untilReported(pair.two, events)
    await client.sync()
    await held.untilDone()
    for (const { text, chunks } of [client, held]) {
      expect(text).toBe('All settled.')
      expect(chunks.filter(({ type }) => type === 'start')).toHaveLength(1)
    }
  },
)

test('[LV100] a live conversation without a reader continues on its server, and watching clients receive it', async () => {
  await using pair = await openPair(LIVE)
  await using client = await SocketClient.open(pair.one.url, { headers: HEADERS })
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(PAY)
  await whole(client)
  const [asked] = await pair.atTwo.approvals()
  expect(await pair.atTwo.decide(asked?.id ?? '', { approved: true })).toMatchObject({
    status: 200,
  })
  const { requestId, messageId } = await client.nextOf('turn')
  expect(messageId).toBe(client.chunks('r1')[0]?.['messageId'])
  expect(await whole(client, requestId)).toBe('All settled.')
  expect(pair.effects()).toHaveLength(1)
  expect(pair.two.emulator.requests).toEqual([])
})

test('[LV100] a decision that this process has not received counts when it is repeated here', async () => {
  await using pair = await openPair(LIVE)
  const [opened, asked] = await askHeld(pair)
  await using client = opened
  pair.deafen()
  expect((await pair.atTwo.decide(asked.approvalId, { approved: true })).status).toBe(200)
  client.confirm(asked.approvalId, true)
  await client.untilDone()
  expect(client.text).toBe('All settled.')
  expect(pair.effects()).toHaveLength(1)
})

test('[LV100] a call whose process does not respond runs once where it is decided, and clients that watch at that process are notified', async () => {
  await using pair = await openPair(LIVE)
  await using client = await SocketClient.open(pair.one.url, { headers: HEADERS })
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(PAY)
  await whole(client)
  const [asked] = await pair.atTwo.approvals()
  const hearAgain = pair.deafen()
  // Its sweeps do not see it either.
  const unreported = pair.ofFirst.unreported.bind(pair.ofFirst)
  pair.ofFirst.unreported = async () => []
  await pair.atTwo.decide(asked?.id ?? '', { approved: true })
  await expect
    .poll(async () => JSON.stringify(await pair.atTwo.messages()))
    .toContain('All settled.')
  hearAgain()
  pair.ofFirst.unreported = unreported
  const { requestId, messageId } = await client.nextOf('turn')
  expect(messageId).toBe(client.chunks('r1')[0]?.['messageId'])
  expect(await whole(client, requestId)).toBe('All settled.')
  expect(pair.effects()).toHaveLength(1)
  // The live conversation continues, and the model knows the outcome.
  client.say('[[say And on.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('And on.')
  expect(toolParts((await pair.atOne.messages())[1])).toMatchObject([{ state: 'output-available' }])
  expect(pair.effects()).toHaveLength(1)
})

test('[LV881] an approved call of a live session that cannot start because the store fails is not cancelled, and runs once', async () => {
  await using pair = await openPair(LIVE)
  await using client = await SocketClient.open(pair.one.url, { headers: HEADERS })
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(PAY)
  await whole(client)
  const [asked] = await pair.atTwo.approvals()
  const replace = pair.ofFirst.replace.bind(pair.ofFirst)
  let claims = 0
  pair.ofFirst.replace = async (transition) => {
    if (transition.entry.event.type === 'started') claims += 1
    if (claims === 1) throw new StoreError('unavailable', 'The database is not available.')
    return replace(transition)
  }
  expect((await pair.atTwo.decide(asked?.id ?? '', { approved: true })).status).toBe(200)
  const readCall = async () => toolParts((await pair.atTwo.messages())[1])[0]
  await expect.poll(readCall).toMatchObject({ state: 'output-available' })
  expect([claims, pair.effects().length]).toEqual([2, 1])
  client.say('[[say And on.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('And on.')
  // The model was told nothing before the result.
  await expect.poll(async () => textOf((await pair.atTwo.messages())[1])).toBe('All settled.')
})

test.each(['stored', 'not stored'])(
  '[LG1450][LV881] a call of a live session runs once, after a decision that was %s although the store failed',
  async (how) => {
    // No sweep helps.
    const limits = { leaseMs: 60_000, sweepMs: 60_000 }
    await using pair = await openPair({ ...LIVE, limits })
    const [opened, { approvalId }] = await askHeld(pair)
    await using client = opened
    const replaceAll = pair.ofFirst.replaceAll.bind(pair.ofFirst)
    pair.ofFirst.replaceAll = async (transitions) => {
      pair.ofFirst.replaceAll = replaceAll
      if (how === 'stored') await replaceAll(transitions)
      throw new StoreError('unavailable', 'The database is not available.')
    }
    const decide = async () => (await pair.atOne.decide(approvalId, { approved: true })).status
    const expected = how === 'stored' ? [503] : [503, 200]
    const statuses: number[] = []
    while (statuses.length < expected.length) statuses.push(await decide())
    expect(statuses).toEqual(expected)
    await client.untilDone()
    expect(client.text).toBe('All settled.')
    expect(pair.effects()).toHaveLength(1)
  },
)

test('[LV881] a decision is not disturbed by an earlier read of the approval that fails', async () => {
  await using pair = await openPair({ ...LIVE, limits: { leaseMs: 60_000, sweepMs: 60_000 } })
  const [reading, fails] = [defer(), defer()]
  const { ofFirst } = pair
  const getWithTime = ofFirst.getWithTime?.bind(ofFirst)
  if (!getWithTime) throw new Error('The store reads approvals with the time.')
  ofFirst.getWithTime = async () => {
    ofFirst.getWithTime = getWithTime
    reading.resolve()
    await fails.promise
    throw new StoreError('unavailable', 'The database is not available.')
  }
  const [opened, { approvalId }] = await askHeld(pair)
  await using client = opened
  await reading.promise
  const replaceAll = ofFirst.replaceAll.bind(ofFirst)
  ofFirst.replaceAll = async (transitions) => {
    fails.resolve()
    // The failed read is noticed before the decision is stored.
    await new Promise(setImmediate)
    return replaceAll(transitions)
  }
  expect((await pair.atOne.decide(approvalId, { approved: true })).status).toBe(200)
  await client.untilDone()
  expect(client.text).toBe('All settled.')
  expect(await typesOf(pair.atOne, approvalId)).toEqual(LIFE)
  expect(pair.effects()).toHaveLength(1)
})

test('[LV881] while the store is away, a live model is told nothing of a decided call, and replies to its result once', async () => {
  await using folder = await makeFolder()
  let failures = 0
  let isAway = false
  const fail = (): void => {
    if (!isAway) return
    failures += 1
    throw new StoreError('unavailable', 'The database is not available.')
  }
  const openStore = async (): Promise<Store> => {
    const store = await openSqliteStore({ path: folder.database })
    const append = store.sessions.appendEvent.bind(store.sessions)
    store.sessions.appendEvent = async (request) => {
      if (JSON.stringify(request.event.customMetadata ?? {}).includes('"decided":')) fail()
      return append(request)
    }
    const find = store.approvals.findLockHolder.bind(store.approvals)
    store.approvals.findLockHolder = async (chat) => {
      if (failures > 0) fail()
      return find(chat)
    }
    return store
  }
  const limits = { leaseMs: 60_000, sweepMs: 60_000 }
  await using pair = await openPair({ ...LIVE, openStore, limits })
  const [opened, { approvalId }] = await askHeld(pair)
  await using client = opened
  isAway = true
  expect((await pair.atOne.decide(approvalId, { approved: true })).status).toBe(200)
  await expect.poll(() => failures).toBeGreaterThan(2)
  expect(client.text).toBe('')
  isAway = false
  await client.untilDone()
  expect(client.text).toBe('All settled.')
  const reply = (await pair.atTwo.messages())[1]
  expect([textOf(reply), toolParts(reply)[0]?.state]).toEqual(['All settled.', 'output-available'])
  expect(pair.effects()).toHaveLength(1)
})

test('[LV1640] a message that two servers receive at the same time gets one reply', async () => {
  await using folder = await makeFolder()
  const { opened, openStore } = keepOpened(folder.database)
  await using pair = await openPair({ ...LIVE, openStore })
  const { sessions, signals } = (await opened[1]) ?? {}
  if (!sessions || !signals) throw new Error('The first server has signals.')
  await using one = await SocketClient.open(pair.one.url, { headers: HEADERS })
  await using two = await SocketClient.open(pair.two.url, { headers: HEADERS })
  one.say('[[say Hello.]]', 'r1')
  expect(await whole(one, 'r1')).toBe('Hello.')
  const [storing, asked] = [defer(), defer()]
  const append = sessions.appendEvent.bind(sessions)
  sessions.appendEvent = async (request) => {
    sessions.appendEvent = append
    storing.resolve()
    await asked.promise
    return append(request)
  }
  const take = signals.take.bind(signals)
  signals.take = async (worker) => {
    const taken = await take(worker)
    // The first server is asked for the session while it stores the message.
    if (taken.some(({ kind }) => kind === 'release-live')) setImmediate(() => asked.resolve())
    return taken
  }
  const message = { id: 'm-2', role: 'user', parts: [{ type: 'text', text: '[[say Once.]]' }] }
  const frame = { type: 'send', requestId: 'r2', id: 'chat-1', trigger: 'submit-message' }
  one.send({ ...frame, messages: [message] })
  await storing.promise
  two.send({ ...frame, messages: [message] })
  expect([await whole(one, 'r2'), await whole(two, 'r2')]).toEqual(['Once.', 'Once.'])
  const texts = async () => (await pair.atTwo.messages()).map(textOf)
  await expect.poll(texts).toEqual(['[[say Hello.]]', 'Hello.', '[[say Once.]]', 'Once.'])
})

test('[LV1640] a server that has sent a message to its model keeps the session if another one needs it for the same message', async () => {
  await using folder = await makeFolder()
  const { opened, openStore } = keepOpened(folder.database)
  await using pair = await openPair({ ...LIVE, openStore })
  const [, first, second] = await Promise.all(opened)
  if (!first?.signals || !second?.signals) throw new Error('The servers have signals.')
  const { signals } = first
  await using one = await SocketClient.open(pair.one.url, { headers: HEADERS })
  await using two = await SocketClient.open(pair.two.url, { headers: HEADERS })
  one.say('[[say Hello.]]', 'r1')
  expect(await whole(one, 'r1')).toBe('Hello.')
  const [asked, sent] = [defer(), defer()]
  const take = signals.take.bind(signals)
  signals.take = async (worker) => {
    const taken = await take(worker)
    if (!taken.some(({ kind }) => kind === 'release-live')) return taken
    asked.resolve()
    await sent.promise
    return taken
  }
  const answered = defer()
  const takeAtTwo = second.signals.take.bind(second.signals)
  second.signals.take = async (worker) => {
    const taken = await takeAtTwo(worker)
    if (taken.length > 0) answered.resolve()
    return taken
  }
  const text = '[[wait reply]][[say Once.]]'
  const message = { id: 'm-2', role: 'user', parts: [{ type: 'text', text }] }
  const frame = { type: 'send', id: 'chat-1', trigger: 'submit-message', messages: [message] }
  // The second server asks before the first one has stored the message, and is answered after it.
  two.send({ ...frame, requestId: 'r2' })
  await asked.promise
  one.send({ ...frame, requestId: 'r2' })
  await one.nextOf('start', 'r2')
  sent.resolve()
  await answered.promise
  pair.one.emulator.release('reply')
  expect([await whole(one, 'r2'), await whole(two, 'r2')]).toEqual(['Once.', 'Once.'])
  expect(pair.two.emulator.live.sessions).toEqual([])
})

test.each([
  ['after a reply', '[[say Hello.]]'],
  ['while a reply is streamed', '[[say Hello.]][[wait rest]][[say Rest.]]'],
])(
  '[LV1950] a message that a server was about to store, %s, when another one took its live session over is stored once',
  async (_name, text) => {
    await using folder = await makeFolder()
    const { opened, openStore } = keepOpened(folder.database)
    await using pair = await openPair({ ...LIVE, openStore })
    const { sessions } = (await opened[1]) ?? {}
    if (!sessions) throw new Error('The first server has a store.')
    await using one = await SocketClient.open(pair.one.url, { headers: HEADERS })
    await using two = await SocketClient.open(pair.two.url, { headers: HEADERS })
    one.say(text, 'r1')
    await expect.poll(() => one.text('r1')).toBe('Hello.')
    if (!text.includes('wait')) await whole(one, 'r1')
    const [storing, resumed, stored] = [defer(), defer(), defer()]
    const append = sessions.appendEvent.bind(sessions)
    sessions.appendEvent = async (request) => {
      if (!JSON.stringify(request.event).includes('say Once.')) return append(request)
      storing.resolve()
      await resumed.promise
      return append(request)
    }
    const message = { id: 'm-2', role: 'user', parts: [{ type: 'text', text: '[[say Once.]]' }] }
    const frame = { type: 'send', id: 'chat-1', trigger: 'submit-message', messages: [message] }
    one.send({ ...frame, requestId: 'r2' })
    await storing.promise
    // For the second server, the lease of the first one has ended. The turn of the first one still has the chat when it continues.
    const lockChat = pair.ofSecond.lockChat.bind(pair.ofSecond)
    const refused = defer()
    pair.ofSecond.lockChat = async (chat, lock) => {
      if (!chat.appName.endsWith(OPEN_RUN_LOCK)) {
        stored.resolve()
        await refused.promise
      }
      return lockChat(chat, { ...lock, leaseMs: 0 })
    }
    two.send({ ...frame, requestId: 'r2' })
    await stored.promise
    const find = pair.ofFirst.findLockHolder.bind(pair.ofFirst)
    pair.ofFirst.findLockHolder = async (chat) => {
      refused.resolve()
      return find(chat)
    }
    resumed.resolve()
    expect(await whole(two, 'r2')).toBe('Once.')
    pair.ofSecond.lockChat = lockChat
    expect(await whole(one, 'r2')).toBe('Once.')
    const texts = async () => (await pair.atTwo.messages()).map(textOf)
    await expect
      .poll(async () => (await texts()).filter((each) => each.includes('Once.')))
      .toEqual(['[[say Once.]]', 'Once.'])
  },
)

test('[LV1800] a message that is repeated at two servers at the same time leaves a conversation that continues', async () => {
  await using folder = await makeFolder()
  const { opened, openStore } = keepOpened(folder.database)
  await using pair = await openPair({ ...LIVE, openStore })
  const [, first, second] = await Promise.all(opened)
  if (!first?.signals || !second) throw new Error('The servers have signals.')
  await using one = await SocketClient.open(pair.one.url, { headers: HEADERS })
  await using two = await SocketClient.open(pair.two.url, { headers: HEADERS })
  const frame = { type: 'send', id: 'chat-1' }
  const messages = [{ id: 'm-1', role: 'user', parts: [{ type: 'text', text: PAY }] }]
  one.send({ ...frame, requestId: 'r1', trigger: 'submit-message', messages })
  await whole(one)
  // The second server has closed the session, and rewinds the chat when the first one has called the tool anew, or waits for the rewind.
  const [locking, called, rewound] = [defer(), defer(), defer()]
  const lockChat = pair.ofSecond.lockChat.bind(pair.ofSecond)
  pair.ofSecond.lockChat = async (chat, lock) => {
    if (chat.appName.endsWith(OPEN_RUN_LOCK)) return lockChat(chat, lock)
    locking.resolve()
    await called.promise
    return lockChat(chat, lock)
  }
  const unlockChat = pair.ofSecond.unlockChat.bind(pair.ofSecond)
  pair.ofSecond.unlockChat = async (chat, token) => {
    await unlockChat(chat, token)
    if (!chat.appName.endsWith(OPEN_RUN_LOCK)) rewound.resolve()
  }
  const insert = pair.ofFirst.insert.bind(pair.ofFirst)
  pair.ofFirst.insert = async (...given) => {
    called.resolve()
    await rewound.promise
    return insert(...given)
  }
  const send = first.signals.send.bind(first.signals)
  first.signals.send = async (worker, signal) => {
    if (signal.kind === 'release-live') called.resolve()
    return send(worker, signal)
  }
  const again = { ...frame, requestId: 'r2', trigger: 'regenerate-message', messages }
  two.send(again)
  await locking.promise
  one.send(again)
  await rewound.promise
  await Promise.allSettled([whole(one, 'r2'), whole(two, 'r2')])
  two.say('[[say Fine.]]', 'r3')
  expect(await whole(two, 'r3')).toBe('Fine.')
  const users = (await pair.atTwo.messages()).filter(({ role }) => role === 'user')
  expect(users.map(textOf)).toEqual([PAY, '[[say Fine.]]'])
})

test('[LV1800] a message that a server repeats while another one, which has repeated it too, waits for a decision is repeated again', async () => {
  await using folder = await makeFolder()
  const { opened, openStore } = keepOpened(folder.database)
  await using pair = await openPair({ ...LIVE, openStore })
  const { signals } = (await opened[1]) ?? {}
  if (!signals) throw new Error('The first server has signals.')
  await using one = await SocketClient.open(pair.one.url, { headers: HEADERS })
  await using two = await SocketClient.open(pair.two.url, { headers: HEADERS })
  const frame = { type: 'send', id: 'chat-1' }
  const messages = [{ id: 'm-1', role: 'user', parts: [{ type: 'text', text: PAY }] }]
  one.send({ ...frame, requestId: 'r1', trigger: 'submit-message', messages })
  await whole(one)
  // The second server has ended the session, and opens its own when the first one has called the tool anew.
  const [opening, called] = [defer(), defer()]
  let hasEnded = false
  const unlockChat = pair.ofSecond.unlockChat.bind(pair.ofSecond)
  pair.ofSecond.unlockChat = async (chat, token) => {
    await unlockChat(chat, token)
    if (chat.appName.endsWith(OPEN_RUN_LOCK)) hasEnded = true
  }
  const lockChat = pair.ofSecond.lockChat.bind(pair.ofSecond)
  pair.ofSecond.lockChat = async (chat, lock) => {
    if (hasEnded && chat.appName.endsWith(OPEN_RUN_LOCK)) {
      opening.resolve()
      await called.promise
    }
    return lockChat(chat, lock)
  }
  const again = { ...frame, requestId: 'r2', trigger: 'regenerate-message', messages }
  two.send(again)
  await opening.promise
  one.send(again)
  await whole(one, 'r2')
  const kept = defer<string>()
  const send = signals.send.bind(signals)
  signals.send = async (worker, signal) => {
    if (JSON.stringify(signal.body).includes('"in-use"')) kept.resolve('kept by the first server')
    return send(worker, signal)
  }
  called.resolve()
  expect(await Promise.race([whole(two, 'r2'), kept.promise])).toBe('')
  const [asked] = await pair.atTwo.approvals()
  expect((await pair.atTwo.decide(asked?.id ?? '', { approved: true })).status).toBe(200)
  const texts = async () => (await pair.atTwo.messages()).map(textOf)
  await expect.poll(texts).toEqual([PAY, 'All settled.'])
  expect(pair.effects()).toHaveLength(1)
})

test('[LV100] a call whose live conversation has ended runs where it is decided', async () => {
  await using pair = await openPair(LIVE)
  const [opened, asked] = await askHeld(pair)
  await using client = opened
  await pair.one.bridge.close()
  expect(await client.closed).toBe(1001)
  expect((await pair.atTwo.answer(asked, { approved: true })).body).toContain('settled.')
  expect(pair.effects()).toHaveLength(1)
})

test('[LV100] an approval that another server expires ends in its live conversation', async () => {
  const limits = { leaseMs: 15_000, sweepMs: 20 }
  await using pair = await openPair({
    ...LIVE,
    limits,
    approvals: { pay: { deadlineMs: 300 } },
    // The sweep of the first server comes too late. The second one expires the approval.
    ofOne: { limits: { leaseMs: 15_000, sweepMs: 60_000 } },
  })
  const [opened, asked] = await askHeld(pair)
  await using client = opened
  await client.untilDone()
  expect(client.ofType('tool-output-error')).toMatchObject([{ toolCallId: asked.toolCallId }])
  expect(client.text).toBe('All settled.')
  expect(await typesOf(pair.atTwo, asked.approvalId)).toEqual(['requested', 'expired'])
  expect(pair.two.emulator.requests).toEqual([])
})

test('[LV14] a live session that has taken a call while another server waited for the chat receives its result', async () => {
  await using pair = await openPair({ ...LIVE, tools: [locationTool({ timeoutMs: 60_000 })] })
  await using client = await SocketClient.open(pair.one.url, { headers: HEADERS })
  client.say(ASK)
  await whole(client)
  const message = (await pair.atTwo.messages())[1]
  // To the second server, the session seems to be opened while it waits for the chat.
  const find = pair.ofSecond.findLockHolder.bind(pair.ofSecond)
  const lock = pair.ofSecond.lockChat.bind(pair.ofSecond)
  pair.ofSecond.findLockHolder = async (chat) =>
    chat.appName.endsWith(OPEN_RUN_LOCK) ? undefined : find(chat)
  pair.ofSecond.lockChat = async (...given) => {
    pair.ofSecond.findLockHolder = find
    return lock(...given)
  }
  const body = locatedRequest(message)
  await pair.atTwo.post('/stream', body)
  const reply = async () => (await pair.atTwo.messages())[1]
  await expect.poll(async () => textOf(await reply())).toContain('are.')
  expect(toolParts(await reply())).toMatchObject([{ output: TOKYO }])
  // The model of the session has received it, and no other one.
  expect(pair.two.emulator.requests).toEqual([])
  expect(pair.two.emulator.live.sessions).toEqual([])
})

test('[LV14] the result of a browser tool that another server accepts is the only one', async () => {
  const tools = [locationTool({ timeoutMs: 3_000 })]
  await using pair = await openPair({ ...LIVE, tools })
  await using client = await SocketClient.open(pair.one.url, { headers: HEADERS })
  client.say(ASK)
  await whole(client)
  const [, message] = await pair.atTwo.messages()
  const body = locatedRequest(message)
  const { body: answer } = await pair.atTwo.post('/stream', body)
  expect(answer).toContain('are.')
  // When the call expires at the first server, it finds that there is a result.
  const from = await pair.store.approvals.now()
  const passed = async (): Promise<number> => (await pair.store.approvals.now()) - from
  await expect.poll(passed).toBeGreaterThan(3_500)
  expect(toolParts((await pair.atOne.messages())[1])).toMatchObject([
    { state: 'output-available', output: TOKYO },
  ])
  expect(await readResults(pair)).toEqual([TOKYO])
})

test.each([
  ['', false],
  [', also if a client sends it there', true],
])(
  '[LV14] a server that stood still while another one used the result of a browser tool does not use it again%s',
  async (_name, isSentAgain) => {
    await using folder = await makeFolder()
    const { opened, openStore } = keepOpened(folder.database)
    const tools = [locationTool({ timeoutMs: 60_000 })]
    await using pair = await openPair({ ...LIVE, tools, openStore })
    const { signals } = (await opened[1]) ?? {}
    if (!signals) throw new Error('The first server has signals.')
    await using client = await SocketClient.open(pair.one.url, { headers: HEADERS })
    client.say(ASK)
    await whole(client)
    // The first server is asked to take the output, and continues when the second one has used it.
    const continued = defer()
    const take = signals.take.bind(signals)
    signals.take = async (worker) => {
      const taken = await take(worker)
      if (taken.some(({ kind }) => kind === 'live-output')) await continued.promise
      return taken
    }
    let replies = 0
    const send = signals.send.bind(signals)
    signals.send = async (worker, signal) => {
      await send(worker, signal)
      if (signal.kind === 'reply') replies += 1
    }
    const [, message] = await pair.atTwo.messages()
    const body = locatedRequest(message)
    expect((await pair.atTwo.post('/stream', body)).body).toContain('are.')
    let status = isSentAgain ? 503 : 200
    while (status !== 200) ({ status } = await pair.atOne.post('/stream', body))
    continued.resolve()
    await expect.poll(() => replies).toBeGreaterThan(1)
    client.say('[[say And on.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('And on.')
    expect(await readResults(pair)).toEqual([TOKYO])
    expect((await pair.atOne.messages()).map(textOf)).toEqual([
      ASK,
      'There you are.',
      '[[say And on.]]',
      'And on.',
    ])
    // The model that made the call has not received a result.
    const [held] = pair.one.emulator.live.sessions
    expect(JSON.stringify(held?.received)).not.toContain('toolResponse')
  },
)

test('[BT1601] an output that a server has taken and lost with its session is refused, and counts when it is sent again', async () => {
  await using folder = await makeFolder()
  const { opened, openStore } = keepOpened(folder.database)
  await using pair = await openPair({ ...LIVE, tools: [locationTool()], openStore })
  const { sessions } = (await opened[1]) ?? {}
  if (!sessions) throw new Error('The first server has a store.')
  const appendEvent = sessions.appendEvent.bind(sessions)
  const find = pair.ofSecond.findLockHolder.bind(pair.ofSecond)
  const continued = defer()
  sessions.appendEvent = async (request) => {
    if (!JSON.stringify(request.event).includes('"latitude":35.7')) return appendEvent(request)
    // It stores nothing, and to the second server it has lost its session.
    pair.ofSecond.findLockHolder = async (chat) =>
      chat.appName.endsWith(OPEN_RUN_LOCK) ? undefined : find(chat)
    await continued.promise
    throw new StoreError('unavailable', 'The database is away.')
  }
  await using client = await SocketClient.open(pair.one.url, { headers: HEADERS })
  client.say(ASK)
  await whole(client)
  const [, message] = await pair.atTwo.messages()
  const body = locatedRequest(message)
  const refused = await pair.atTwo.post('/stream', body)
  expect([refused.status, refused.body]).toEqual([503, expect.stringContaining('unavailable')])
  pair.ofSecond.findLockHolder = find
  sessions.appendEvent = appendEvent
  continued.resolve()
  await pair.atTwo.post('/stream', body)
  const reply = async () => (await pair.atTwo.messages())[1]
  await expect.poll(async () => textOf(await reply())).toContain('are.')
  expect(await readResults(pair)).toEqual([TOKYO])
})

test('[EV100] clients that watch at any server receive the decision, the result and the end of the reply', async () => {
  await using pair = await openPair(LIVE)
  const feeds = await Promise.all([pair.one, pair.two].map(openFeed))
  await using watcher = await SocketClient.open(pair.two.url, { headers: HEADERS })
  watcher.send({ type: 'watch', id: 'chat-1' })
  await watcher.nextOf('status')
  const [opened, asked] = await askHeld(pair)
  await using client = opened
  await pair.atTwo.decide(asked.approvalId, { approved: true })
  await client.untilDone()
  const { requestId, messageId } = await watcher.nextOf('turn')
  expect(messageId).toBe(asked.messageId)
  expect(await whole(watcher, requestId)).toBe('All settled.')
  expect(watcher.chunks(requestId).map(({ type }) => type)).toContain('tool-output-available')
  for (const [index, events] of feeds.entries()) {
    await untilReported(index === 0 ? pair.one : pair.two, events)
    const states = readStates(events)
    // The second server may accept the decision before it has read the request. Then it reports only the newer state.
    const isOvertaken = index === 1 && states[0] !== 'requested'
    expect(states).toEqual([
      ...(isOvertaken ? [] : ['requested']),
      'approved',
      'executing',
      'succeeded',
    ])
  }
})

test('[EV100] without a live session too, clients that watch at the asking server receive what another server did', async () => {
  await using pair = await openPair()
  const events = await openFeed(pair.one)
  const { approvalId, messageId } = await pair.atOne.ask(PAY)
  await pair.atTwo.decide(approvalId, { approved: true })
  await untilReported(pair.one, events)
  expect(readStates(events)).toEqual(['requested', 'approved', 'executing', 'succeeded'])
  expect(events.filter(({ type }) => type === 'turn')).toMatchObject([{ messageId }])
  expect(pair.effects()).toHaveLength(1)
})

test('[LV880] a socket that has closed does not take the session over from a client of another server', async () => {
  const started = defer()
  const context = { toState: () => started.promise.then(() => ({})) }
  await using pair = await openPair({ ...LIVE, isSpoken: true, context })
  await using newer = await SocketClient.open(pair.two.url, { headers: HEADERS })
  newer.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  beginToSpeak(newer)
  await newer.sync()
  // Its audio arrives while its server asks for the session, which the other server is about to start.
  const older = await SocketClient.open(pair.one.url, { headers: HEADERS })
  older.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  beginToSpeak(older)
  await older.sync()
  older.socket.close()
  await older.closed
  started.resolve()
  await using reader = await SocketClient.open(pair.one.url, { headers: HEADERS })
  reader.say('[[say Typed.]]', 'r1', 'chat-1')
  expect(await whole(reader)).toBe('Typed.')
  expect(newer.frames.filter(({ status }) => status === 'taken-over')).toEqual([])
})

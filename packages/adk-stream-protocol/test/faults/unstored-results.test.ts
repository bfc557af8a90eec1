import { createEvent, FunctionTool } from '@google/adk'
import { FinishReason } from '@google/genai'
import Database from 'libsql'
import { expect, test } from 'vitest'

import { writeNotes } from '../../src/agent/events/event-notes.ts'
import { splitTurns } from '../../src/agent/history/stored-turns.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { readError } from '../../src/store/read-error.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { nest } from '../approvals/support/nested-agents.ts'
import { callPayment } from '../approvals/support/payments.ts'
import {
  joinLive,
  openLiveTestBridge,
  untilAsked,
  whole,
} from '../live/support/live-test-bridge.ts'
import { defer } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { ASK, locatedRequest, locationTool, TOKYO } from '../support/locating.ts'
import { makeFolder } from './support/folder.ts'
import { openPaymentServer } from './support/payment-server.ts'
import { Person, readEffects } from './support/person.ts'

type Moment = 'outcome' | 'result' | 'report'

/** Makes one write of a store fail: the outcome of a call, its result, or that the conversation shows it. Returns whether it has failed. */
function failOnce({ approvals, sessions }: Store, moment: Moment): () => boolean {
  let hasFailed = false
  const fail = (at: Moment, written: unknown, part: string): void => {
    if (at !== moment || hasFailed || !JSON.stringify(written).includes(part)) return
    hasFailed = true
    throw new StoreError('full', 'The disk is full.')
  }
  const appendEvent = sessions.appendEvent.bind(sessions)
  sessions.appendEvent = async (request) => {
    fail('result', request.event.customMetadata ?? {}, '"decided":')
    return appendEvent(request)
  }
  const replace = approvals.replace.bind(approvals)
  approvals.replace = async (...given) => {
    fail('outcome', given, '"succeeded"')
    return replace(...given)
  }
  const markReported = approvals.markReported.bind(approvals)
  approvals.markReported = async (...given) => {
    fail('report', '', '')
    return markReported(...given)
  }
  return () => hasFailed
}

const PAY = '[[call pay {"to": "花子", "amount": 50}]]'
const INSIDE = JSON.stringify({ request: `${PAY} [[then]] [[say Paid inside.]]` })
const NESTED = `[[call desk ${INSIDE}]]`

test.for([
  { moment: 'outcome', place: 'an agent used as a tool', script: NESTED },
  { moment: 'result', place: 'an agent used as a tool', script: NESTED },
  { moment: 'result', place: 'the assistant', script: PAY },
] as const)(
  '[AP825] if the store fails once for the $moment of a call of $place, the agent continues with the result',
  async ({ moment, script }) => {
    await using folder = await makeFolder()
    await using store = await openSqliteStore({ path: folder.database })
    const hasFailed = failOnce(store, moment)
    await using server = await openPaymentServer({
      store,
      effects: folder.effects,
      // No lease expires during the test.
      limits: { leaseMs: 600_000, sweepMs: 20 },
    })
    const person = new Person(server.url)
    const { approvalId, toolCallId } = await person.ask(`${script} [[then]] [[say Paid.]]`)
    expect((await person.decide(approvalId, { approved: true })).status).toBe(200)
    const last = async () => (await person.messages()).at(-1)
    await expect.poll(async () => textOf(await last())).toBe('Paid.')
    expect(hasFailed()).toBe(true)
    const parts = toolParts(await last())
    expect(parts.find((part) => part.toolCallId === toolCallId)).toMatchObject({
      state: 'output-available',
      output: { paid: 50 },
    })
    expect(parts.filter(({ state }) => state !== 'output-available')).toEqual([])
    expect(readEffects(folder.effects)).toHaveLength(1)
    expect(await person.approval(approvalId)).toMatchObject({ approval: { state: 'succeeded' } })
  },
)

test('[AP825] a reply that is stored is not reported as failed if the store fails after it', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  const hasFailed = failOnce(store, 'report')
  await using server = await openPaymentServer({ store, effects: folder.effects })
  const person = new Person(server.url)
  const asked = await person.ask(`${PAY} [[then]] [[say Paid.]]`)
  const { chunks } = await person.answer(asked, { approved: true })
  expect(hasFailed()).toBe(true)
  expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' })
  expect(server.errors.map(String)).toEqual(['StoreError: The disk is full.'])
})

/** Makes one read of the conversation fail, the one that `countDown` says. Returns a function that starts to count. */
function failRead({ sessions }: Store, countDown: number): () => void {
  let left = Infinity
  const getSession = sessions.getSession.bind(sessions)
  sessions.getSession = async (request) => {
    left -= 1
    if (left === 0) throw new StoreError('busy', 'The database is locked.')
    return getSession(request)
  }
  return () => {
    left = countDown
  }
}

test('[AP825] a complete reply to a decision is not an error if the store cannot be read afterwards', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  const { approvals } = store
  const startCounting = failRead(store, 1)
  const markReported = approvals.markReported.bind(approvals)
  approvals.markReported = async (...given) => {
    await markReported(...given)
    startCounting()
  }
  await using server = await openPaymentServer({ store, effects: folder.effects })
  const person = new Person(server.url)
  const asked = await person.ask(`${PAY} [[then]] [[say Paid.]]`)
  const { chunks } = await person.answer(asked, { approved: true })
  expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' })
  expect(server.errors.map(String)).toEqual(['StoreError: The database is locked.'])
  expect(textOf((await person.messages()).at(-1))).toBe('Paid.')
})

test('[AP825] if the store cannot be read before the agent continues, the error says that the server is not available', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  // The first read is for the part of the turn before the decision.
  const startCounting = failRead(store, 2)
  await using server = await openPaymentServer({ store, effects: folder.effects })
  const person = new Person(server.url)
  const asked = await person.ask(`${PAY} [[then]] [[say Paid.]]`)
  startCounting()
  const { chunks } = await person.answer(asked, { approved: true })
  const errorText = 'The server is not available. Try again in a moment.'
  expect(chunks.find(({ type }) => type === 'error')).toMatchObject({ errorText })
  await expect.poll(async () => textOf((await person.messages()).at(-1))).toBe('Paid.')
})

test('[TU870] a reply that is stored after the database was locked is not followed by an error', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database, busyTimeoutMs: 500 })
  const { sessions } = store
  const appendEvent = sessions.appendEvent.bind(sessions)
  const other = new Database(folder.database)
  let refused = 0
  sessions.appendEvent = async (request) => {
    const isReply = request.event.author === 'assistant' && refused === 0
    if (isReply) other.exec('BEGIN IMMEDIATE')
    return appendEvent(request).catch((error: unknown) => {
      refused += 1
      other.exec('ROLLBACK')
      throw error
    })
  }
  await using server = await openPaymentServer({ store, effects: folder.effects })
  const person = new Person(server.url)
  const { chunks } = await person.say('[[say Hello.]]')
  other.close()
  expect(refused).toBe(1)
  expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' })
  const last = (await person.messages()).at(-1)
  expect(textOf(last)).toBe('Hello.')
  expect(last?.metadata).not.toHaveProperty('stopped')
})

/** Makes the store fail when the first event of the agent is stored. */
function failFirstReply({ sessions }: Pick<Store, 'sessions'>, error: StoreError): void {
  const appendEvent = sessions.appendEvent.bind(sessions)
  let hasFailed = false
  sessions.appendEvent = async (request) => {
    if (request.event.author !== 'assistant' || hasFailed) return appendEvent(request)
    hasFailed = true
    throw error
  }
}

test('[TU871] a reload shows the error of a reply that could not be stored at first', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  failFirstReply(store, new StoreError('unavailable', 'The database is not available.'))
  await using server = await openPaymentServer({ store, effects: folder.effects })
  const person = new Person(server.url)
  const { chunks } = await person.say('[[say Hello.]]')
  expect(chunks.at(-1)).toMatchObject({ type: 'error' })
  const last = (await person.messages()).at(-1)
  expect(textOf(last)).toBe('Hello.')
  expect(last?.metadata).toMatchObject({ error: { code: 'unavailable', retryAfterSeconds: 5 } })
  expect(last?.metadata).not.toHaveProperty('stopped')
  expect((await person.say('[[say Again.]]')).chunks.at(-1)).toMatchObject({ type: 'finish' })
})

test.for([
  { when: 'at its end', failures: 1 },
  { when: 'when the store works again', failures: 2 },
])(
  '[TU1065] the error of a message that could not be stored is not stored as that of the reply before it, $when',
  async ({ failures }) => {
    await using folder = await makeFolder()
    await using store = await openSqliteStore({ path: folder.database })
    const { sessions } = store
    let left = 0
    let reads = 0
    const failSometimes = (): void => {
      if (left-- > 0) throw new StoreError('unavailable', 'The database is not available.')
    }
    const appendEvent = sessions.appendEvent.bind(sessions)
    sessions.appendEvent = async (request) => {
      failSometimes()
      return appendEvent(request)
    }
    const getSession = sessions.getSession.bind(sessions)
    sessions.getSession = async (request) => {
      failSometimes()
      reads += 1
      return getSession(request)
    }
    await using server = await openPaymentServer({
      store,
      effects: folder.effects,
      limits: { sweepMs: 20 },
    })
    const person = new Person(server.url)
    await person.say('[[say Hello.]]')
    left = failures
    const before = reads
    expect((await person.say('[[say Lost.]]')).chunks.at(-1)).toMatchObject({ type: 'error' })
    await expect.poll(() => reads).toBeGreaterThan(before)
    // This turn starts when the server has repaired the conversation.
    await person.say('[[say Again.]]')
    const replies = (await person.messages()).filter(({ role }) => role === 'assistant')
    expect(replies.map(textOf)).toEqual(['Hello.', 'Again.'])
    for (const { metadata } of replies) expect(metadata).not.toHaveProperty('error')
  },
)

test('[TU871] a reload shows why a reply ended whose call could not be stored', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  failFirstReply(store, new StoreError('full', 'The disk is full.'))
  await using server = await openPaymentServer({ store, effects: folder.effects })
  const person = new Person(server.url)
  const { chunks } = await person.say(`${PAY} [[then]] [[say Paid.]]`)
  expect(chunks.at(-1)).toMatchObject({ type: 'error' })
  const last = (await person.messages()).at(-1)
  expect(last).toMatchObject({ role: 'assistant', metadata: { error: { code: 'store-failed' } } })
  expect(last?.metadata).not.toHaveProperty('stopped')
  expect(await person.approvals()).toEqual([])
  expect((await person.say('[[say Again.]]')).chunks.at(-1)).toMatchObject({ type: 'finish' })
  expect(readEffects(folder.effects)).toEqual([])
})

test.for([
  { what: 'text', script: '[[say Hello.]]', shown: 'Hello.' },
  { what: 'a call', script: PAY, shown: '' },
])(
  '[TU871] a reply with $what that could not be stored, also not at its end, is stored with its error when the store works again',
  async ({ script, shown }) => {
    await using folder = await makeFolder()
    await using store = await openSqliteStore({ path: folder.database })
    const { sessions } = store
    const appendEvent = sessions.appendEvent.bind(sessions)
    let isFull = false
    sessions.appendEvent = async (request) => {
      if (request.event.author === 'assistant' && !hasRecovered) isFull = true
      if (isFull) throw new StoreError('full', 'The disk is full.')
      return appendEvent(request)
    }
    let hasRecovered = false
    await using server = await openPaymentServer({
      store,
      effects: folder.effects,
      limits: { sweepMs: 20 },
    })
    const person = new Person(server.url)
    expect((await person.say(script)).chunks.at(-1)).toMatchObject({ type: 'error' })
    expect((await person.messages()).map(({ role }) => role)).toEqual(['user'])
    hasRecovered = true
    isFull = false
    const last = async () => (await person.messages()).at(-1)
    await expect.poll(async () => (await last())?.role).toBe('assistant')
    expect(await last()).toMatchObject({ metadata: { error: { code: 'store-failed' } } })
    expect(textOf(await last())).toBe(shown)
    expect((await person.say('[[say Again.]]')).chunks.at(-1)).toMatchObject({ type: 'finish' })
    expect(readEffects(folder.effects)).toEqual([])
  },
)

test('[TU871] a reply that could not be stored is stored later, although its person has as many turns as are allowed when the store works again', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  const { sessions, approvals } = store
  const appendEvent = sessions.appendEvent.bind(sessions)
  let isFull = true
  sessions.appendEvent = async (request) => {
    if (request.session.id === 'chat-1' && request.event.author === 'assistant' && isFull)
      throw new StoreError('full', 'The disk is full.')
    return appendEvent(request)
  }
  // Every sweep compares the locks before it repairs conversations.
  const listLocks = approvals.listLocks.bind(approvals)
  const mayCompare = defer()
  let sweeps = 0
  approvals.listLocks = async (worker) => {
    sweeps += 1
    await mayCompare.promise
    return listLocks(worker)
  }
  await using server = await openPaymentServer({
    store,
    effects: folder.effects,
    limits: { sweepMs: 20, maxTurnsPerPrincipal: 1 },
  })
  const [person, elsewhere] = ['chat-1', 'chat-2'].map(
    (chatId) => new Person(server.url, { chatId }),
  ) as [Person, Person]
  expect((await person.say('[[say Hello.]]')).chunks.at(-1)).toMatchObject({ type: 'error' })
  const begin = () => elsewhere.begin('[[say Wait.]][[wait end]]')
  let response = await begin()
  // The first turn ends after its stream.
  await expect.poll(async () => response.ok || (response = await begin()).ok).toBe(true)
  isFull = false
  mayCompare.resolve()
  const before = sweeps
  await expect.poll(() => sweeps).toBeGreaterThan(before + 1)
  expect((await person.messages()).map(({ role }) => role)).toEqual(['user'])
  server.emulator.release('end')
  await response.text()
  const last = async () => (await person.messages()).at(-1)
  await expect.poll(async () => textOf(await last())).toBe('Hello.')
  expect(await last()).toMatchObject({ metadata: { error: { code: 'store-failed' } } })
  expect(server.errors.map((error) => readError(error).code)).not.toContain('too-many-turns')
})

test.for([
  { what: 'its beginning', stored: 'Hel', isContinued: false, hasNewer: false },
  { what: 'the same', stored: 'Hello.', isContinued: false, hasNewer: false },
  { what: 'a whole reply', stored: 'Hello.', isContinued: true, hasNewer: false },
  {
    what: 'a whole reply and a newer message',
    stored: 'Hello.',
    isContinued: true,
    hasNewer: true,
  },
])(
  '[TU871] a reply that could not be stored is stored once, if another server has stored $what meanwhile',
  async ({ stored, isContinued, hasNewer }) => {
    await using folder = await makeFolder()
    await using store = await openSqliteStore({ path: folder.database })
    await using other = await openSqliteStore({ path: folder.database })
    const { sessions } = store
    let state: 'works' | 'away' | 'recovered' | 'read' = 'works'
    const failIfAway = (): void => {
      if (state === 'away') throw new StoreError('unavailable', 'The database is not available.')
    }
    const appendEvent = sessions.appendEvent.bind(sessions)
    sessions.appendEvent = async (request) => {
      if (state === 'works' && request.event.author === 'assistant') state = 'away'
      failIfAway()
      return appendEvent(request)
    }
    const getSession = sessions.getSession.bind(sessions)
    sessions.getSession = async (request) => {
      failIfAway()
      if (state === 'recovered') state = 'read'
      return getSession(request)
    }
    const { effects } = folder
    await using server = await openPaymentServer({ store, effects, limits: { sweepMs: 20 } })
    await using second = await openPaymentServer({ store: other, effects })
    const [person, elsewhere] = [new Person(server.url), new Person(second.url)]
    await person.say('[[say Hello.]]')
    const key = { appName: 'adk-stream-protocol', userId: person.user, sessionId: person.chatId }
    const session = await other.sessions.getSession(key)
    const [turn] = splitTurns(session?.events ?? [])
    if (!session || !turn) throw new Error('The message is not stored.')
    const event = createEvent({
      author: 'assistant',
      invocationId: 'another-run',
      content: { role: 'model', parts: [{ text: stored }] },
      customMetadata: writeNotes({ messageId: turn.messageId }),
      ...(isContinued ? { finishReason: FinishReason.STOP } : { interrupted: true }),
    })
    await other.sessions.appendEvent({ session, event })
    if (hasNewer) await elsewhere.say('[[say Newer.]]')
    state = 'recovered'
    await expect.poll(() => state).toBe('read')
    // This turn starts when the server has repaired the conversation.
    await person.say('[[say Again.]]')
    const [, reply] = await person.messages()
    expect(textOf(reply)).toBe('Hello.')
    expect(reply?.metadata).not.toHaveProperty('stopped')
    expect(Object.keys(reply?.metadata ?? {}).includes('error')).toBe(!isContinued)
  },
)

test.for([
  { when: 'is read at once', isAway: false, hasNewer: false },
  { when: 'cannot be read at first', isAway: true, hasNewer: false },
  { when: 'cannot be read until there is a newer message', isAway: true, hasNewer: true },
])(
  '[TU1065] a reply that is stored although the store reported a failure has no error: it $when',
  async ({ isAway, hasNewer }) => {
    await using folder = await makeFolder()
    await using store = await openSqliteStore({ path: folder.database })
    await using other = await openSqliteStore({ path: folder.database })
    const away = loseAnswer(store, isAway)
    const { effects } = folder
    await using server = await openPaymentServer({ store, effects, limits: { sweepMs: 20 } })
    await using second = await openPaymentServer({ store: other, effects })
    const person = new Person(server.url)
    expect((await person.say('[[say Hello.]]')).chunks.at(-1)).toMatchObject({ type: 'error' })
    const elsewhere = new Person(second.url)
    if (hasNewer) await elsewhere.say('[[say Newer.]]')
    away.end()
    await expect.poll(away.hasBeenRead).toBe(true)
    // This turn starts when the server has repaired the conversation.
    await person.say('[[say Again.]]')
    const replies = (await elsewhere.messages()).filter(({ role }) => role === 'assistant')
    expect(replies.map(textOf)).toEqual(['Hello.', ...(hasNewer ? ['Newer.'] : []), 'Again.'])
    for (const { metadata } of replies) expect(metadata).not.toHaveProperty('error')
  },
)

/**
 * Makes the store fail after it has stored the first event of the agent, as if the answer of the database were lost. If it stays away,
 * the conversation cannot be used until `end` is called.
 */
function loseAnswer({ sessions }: Store, staysAway: boolean) {
  let state: 'works' | 'away' | 'recovered' | 'read' = 'works'
  const lost = new StoreError('unavailable', 'The connection was lost.')
  const appendEvent = sessions.appendEvent.bind(sessions)
  sessions.appendEvent = async (request) => {
    if (state === 'away') throw lost
    const event = await appendEvent(request)
    if (state !== 'works' || event.author !== 'assistant' || event.partial === true) return event
    state = staysAway ? 'away' : 'recovered'
    throw lost
  }
  const getSession = sessions.getSession.bind(sessions)
  sessions.getSession = async (request) => {
    if (state === 'away') throw lost
    if (state === 'recovered') state = 'read'
    return getSession(request)
  }
  return {
    end: () => {
      if (state === 'away') state = 'recovered'
    },
    hasBeenRead: () => state === 'read',
  }
}

test('[TU882] a failure of the store in a callback of a plugin is streamed with its own code', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  const { approvals } = store
  const insert = approvals.insert.bind(approvals)
  let hasFailed = false
  approvals.insert = async (...given) => {
    if (hasFailed) return insert(...given)
    hasFailed = true
    throw new StoreError('full', 'The disk is full.')
  }
  await using server = await openPaymentServer({ store, effects: folder.effects })
  const person = new Person(server.url)
  const { chunks } = await person.say(`${PAY} [[then]] [[say Paid.]]`)
  expect(chunks.find(({ type }) => type === 'message-metadata')).toMatchObject({
    messageMetadata: { error: { code: 'store-failed' } },
  })
  expect((await person.messages()).at(-1)?.metadata).toMatchObject({
    error: { code: 'store-failed' },
  })
  expect(readEffects(folder.effects)).toEqual([])
})

/** Makes the store fail once when it is to store that a call was handed over. */
function failAtHandover({ sessions }: Store): void {
  const appendEvent = sessions.appendEvent.bind(sessions)
  let failures = 0
  sessions.appendEvent = async (request) => {
    const isHandover = JSON.stringify(request.event).includes('"handedOver":')
    if (isHandover) failures += 1
    if (isHandover && failures === 1) throw new StoreError('full', 'The disk is full.')
    return appendEvent(request)
  }
}

test('[BT1580] an approved browser call whose handover could not be stored is handed over by the next turn, and has the result of the client', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  failAtHandover(store)
  await using server = await openPaymentServer({
    store,
    effects: folder.effects,
    tools: [locationTool({ gated: true })],
    limits: { leaseMs: 600_000, sweepMs: 20 },
  })
  const person = new Person(server.url)
  await person.say(ASK)
  const [asked] = await person.approvals()
  expect((await person.decide(asked?.id ?? '', { approved: true })).status).toBe(200)
  const readCall = async () => toolParts((await person.messages()).at(-1))[0]
  await expect.poll(readCall).toMatchObject({ state: 'input-available' })
  const message = (await person.messages()).at(-1)
  expect(JSON.stringify(message)).toContain('data-browser-call')
  await person.post('/stream', locatedRequest(message))
  expect(await readCall()).toMatchObject({ state: 'output-available', output: TOKYO })
  expect(textOf((await person.messages()).at(-1))).toBe('There you are.')
})

test('[BT1580] an approved long-running call that returned nothing waits for the application, also if its handover could not be stored, and runs once', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  failAtHandover(store)
  const { sessions } = store
  const key = { appName: 'adk-stream-protocol', userId: 'hanako', sessionId: 'chat-1' }
  let runs = 0
  const report = new FunctionTool({
    name: 'run_report',
    description: 'Begins a report.',
    isLongRunning: true,
    requireConfirmation: true,
    execute: () => {
      runs += 1
    },
  })
  await using server = await openPaymentServer({
    store,
    effects: folder.effects,
    tools: [report],
    limits: { leaseMs: 600_000, sweepMs: 20 },
  })
  const person = new Person(server.url)
  await person.say('[[call run_report {}]][[then]][[say It says up.]]')
  const [asked] = await person.approvals()
  expect((await person.decide(asked?.id ?? '', { approved: true })).status).toBe(200)
  const readCall = async () => toolParts((await person.messages()).at(-1))[0]
  const isHandedOver = async () =>
    JSON.stringify(await sessions.getSession(key)).includes('"handedOver":')
  await expect.poll(isHandedOver).toBe(true)
  expect(await readCall()).toMatchObject({ state: 'input-available' })
  const toolCallId = (await readCall())?.toolCallId ?? ''
  const address = { principalId: 'hanako', chatId: 'chat-1', toolCallId }
  await server.bridge.completeCall({ ...address, output: { report: 'Up.' } })
  await expect
    .poll(readCall)
    .toMatchObject({ state: 'output-available', output: { report: 'Up.' } })
  await expect.poll(async () => textOf((await person.messages()).at(-1))).toBe('It says up.')
  expect(runs).toBe(1)
})

test('[LV1341] a live reply that is stored although the store reported a failure is not stored again', async () => {
  const store = await openSqliteStore({ path: ':memory:' })
  const { sessions } = store
  const appendEvent = sessions.appendEvent.bind(sessions)
  sessions.appendEvent = async (request) => {
    const event = await appendEvent(request)
    const isReply = !event.partial && event.content?.parts?.[0]?.text === 'Hello.'
    if (isReply) throw new StoreError('unavailable', 'The connection was lost.')
    return event
  }
  await using testBridge = await openLiveTestBridge({ openStore: async () => store })
  await using client = await joinLive(testBridge)
  client.say('[[say Hello.]]')
  await client.next(({ type }) => type === 'end' || type === 'error')
  client.say('[[say Again.]]', 'r2')
  expect(await whole(client, 'r2')).toBe('Again.')
  const replies = (await testBridge.page().messages()).filter(({ role }) => role === 'assistant')
  expect(replies.map(textOf)).toEqual(['Hello.', 'Again.'])
})

test('[AP825] [LV881] if the store fails once for a result inside an agent of a live session, the agent continues with it', async () => {
  await using folder = await makeFolder()
  const store = await openSqliteStore({ path: folder.database })
  const hasFailed = failOnce(store, 'result')
  await using testBridge = await openLiveTestBridge({
    openStore: async () => store,
    agent: (model, tools) => nest(model, tools, { outer: tools }),
    limits: { leaseMs: 600_000, sweepMs: 20 },
  })
  await using client = await joinLive(testBridge)
  const request = `${callPayment(50)}[[then]][[say Booked.]]`
  client.say(`[[call travel ${JSON.stringify({ request })}]]`)
  const [approvalId = ''] = await untilAsked(client)
  client.send({ type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId, approved: true })
  await expect.poll(hasFailed).toBe(true)
  const page = testBridge.page()
  await page.untilState(approvalId, 'succeeded')
  const states = async () => toolParts((await page.messages())[1]).map(({ state }) => state)
  // No lease expires during the test: the server knows that its own session has left the call.
  await expect.poll(states).toEqual(['output-available', 'output-available'])
})

import { setImmediate } from 'node:timers/promises'

import type { Session } from '@google/adk'

import { canAppendResponse } from '../../agent/history/cut-events.ts'
import type { Approval } from '../../approvals/approval.ts'
import { OPEN_RUN_LOCK } from '../../locks/lock-names.ts'
import type { ChatLock } from '../../locks/lock-store.ts'
import { StoreError } from '../store-error.ts'
import { canReadLocked } from '../store.ts'
import type { ApprovalSubject, ContractTest, StoreContractOptions } from './contract-test.ts'
import { expect, expectRefusal } from './contract-test.ts'
import {
  after,
  approve,
  askedFor,
  chat,
  claimOf,
  collect,
  deltaEvent,
  deny,
  hanako,
  ids,
  idsOf,
  insert,
  key,
  lockOf,
  manager,
  NOON,
  numbered,
  readSession,
  step,
  textEvent,
} from './fixtures.ts'

type Open = StoreContractOptions['open']

const CHAT = { appName: key.appName, principalId: key.userId, chatId: key.sessionId }

/** Defines the tests of sessions whose chats several processes lock, rewind and append to. */
export function lockContract(test: ContractTest, open: Open): void {
  testRewind(test, open)
  testLocks(test, open)
  testLockedSessions(test, open)
}

function testRewind(test: ContractTest, open: Open): void {
  test('[ST19] rewind removes the event and all later ones except those to keep, with their state', async () => {
    await using database = await open()
    const { sessions } = await database.open()
    const session = await sessions.createSession({ ...key, state: { tone: 'polite', count: 0 } })
    const deltas = {
      e1: { count: 1 },
      e2: { tone: undefined },
      e3: { count: 3, 'user:u': 3 },
      e4: { kept: 1 },
    }
    for (const [id, delta] of Object.entries(deltas))
      await sessions.appendEvent({ session, event: deltaEvent(id, delta) })
    await readSession(sessions)
    await sessions.rewind({ ...key, eventId: 'e2', keep: ['e4', 'unknown'] })
    const rewound = await readSession(sessions)
    expect(idsOf(rewound)).toEqual(['e1', 'e4'])
    expect(rewound.state).toEqual({ tone: 'polite', count: 1, kept: 1, 'user:u': 3 })
    await sessions.appendEvent({ session: rewound, event: textEvent('e2', { timestamp: 20 }) })
    expect(idsOf(await readSession(sessions))).toEqual(['e1', 'e4', 'e2'])
    await sessions.rewind({ ...key, eventId: 'e1' })
    const empty = await readSession(sessions)
    expect([empty.events, empty.state]).toEqual([[], { tone: 'polite', count: 0, 'user:u': 3 }])
  })

  test('[ST19] rewind to an unknown event is a conflict, and of an unknown session is session-gone', async () => {
    await using database = await open()
    const { sessions } = await database.open()
    const session = await sessions.createSession(key)
    await sessions.appendEvent({ session, event: textEvent('a') })
    await expectRefusal(sessions.rewind({ ...key, eventId: 'x' }), 'conflict')
    await expectRefusal(sessions.rewind({ ...key, userId: 'x', eventId: 'a' }), 'session-gone')
    expect(idsOf(await readSession(sessions))).toEqual(['a'])
  })

  test('[ST80] the response to a call is not stored if another process has removed the call', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    const { sessions } = one
    // Optional: a session service without it checks right before its write.
    if (!canAppendResponse(sessions)) return
    const session = await sessions.createSession(key)
    const call = { functionCall: { id: 'call-1', name: 'pay', args: {} } }
    const answer = { functionResponse: { id: 'call-1', name: 'pay', response: {} } }
    const eventOf = (id: string, part: typeof call | typeof answer) =>
      textEvent(id, { content: { role: 'model', parts: [part] } })
    const append = (id: string) =>
      sessions.appendResponse({ session, event: eventOf(id, answer) }, ['call-1'])
    await sessions.appendEvent({ session, event: eventOf('made', call) })
    expect(await append('answered')).toBe(true)
    // At the same time: whichever is first, the call and its response are kept or removed together.
    await Promise.all([two.sessions.rewind({ ...key, eventId: 'made' }), append('late')])
    expect(idsOf(await readSession(two.sessions))).toEqual([])
    expect(await append('later')).toBe(false)
    expect(idsOf(await readSession(two.sessions))).toEqual([])
  })
}

function testLocks(test: ContractTest, open: Open): void {
  test('[ST80] a process that has lost its chat lock to another one can neither append nor rewind', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    const session = await one.sessions.createSession(key)
    expect(await one.approvals.lockChat(CHAT, lockOf('first', 60_000))).toBe(true)
    await one.sessions.appendEvent({ session, event: textEvent('e-1') })
    // With a lease of 0 ms, every lock has expired.
    expect(await two.approvals.lockChat(CHAT, lockOf('second', 0))).toBe(true)
    const appendLate = (id: string) => one.sessions.appendEvent({ session, event: textEvent(id) })
    await expectRefusal(appendLate('late'), 'lock-lost')
    await expectRefusal(one.sessions.rewind({ ...key, eventId: 'e-1' }), 'lock-lost')
    // Appending the same event again changes it.
    await expectRefusal(appendLate('e-1'), 'lock-lost')
    const taker = await readSession(two.sessions)
    await two.sessions.appendEvent({ session: taker, event: textEvent('e-2') })
    await two.approvals.unlockChat(CHAT, 'second')
    // The chat is not locked now, and the process that lost it has no lock either.
    await expectRefusal(appendLate('later'), 'lock-lost')
    await one.approvals.unlockChat(CHAT, 'first')
    const again = await readSession(one.sessions)
    await one.sessions.appendEvent({ session: again, event: textEvent('e-3') })
    expect(idsOf(await readSession(two.sessions))).toEqual(['e-1', 'e-2', 'e-3'])
  })

  test('[ST80] a process that has lost the run that stays open in a chat can neither append nor rewind, but store the response to a call', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    const session = await one.sessions.createSession(key)
    const openRun = { ...CHAT, appName: CHAT.appName + OPEN_RUN_LOCK }
    const append = (id: string) => one.sessions.appendEvent({ session, event: textEvent(id) })
    expect(await one.approvals.lockChat(openRun, lockOf('first', 60_000))).toBe(true)
    const call = { functionCall: { id: 'call-1', name: 'pay', args: {} } }
    const called = textEvent('e-1', { content: { role: 'model', parts: [call] } })
    await one.sessions.appendEvent({ session, event: called })
    // With a lease of 0 ms, every lock has expired.
    expect(await two.approvals.lockChat(openRun, lockOf('second', 0))).toBe(true)
    await expectRefusal(append('late'), 'lock-lost')
    await expectRefusal(one.sessions.rewind({ ...key, eventId: 'e-1' }), 'lock-lost')
    await expectRefusal(append('e-1'), 'lock-lost')
    expect(await one.approvals.lockChat(CHAT, lockOf('turn', 60_000))).toBe(true)
    await expectRefusal(append('of a turn'), 'lock-lost')
    if (canAppendResponse(one.sessions)) {
      const event = textEvent('e-2', { content: { role: 'user', parts: [{ text: 'done' }] } })
      expect(await one.sessions.appendResponse({ session, event }, ['call-1'])).toBe(true)
    } else
      await two.sessions.appendEvent({
        session: await readSession(two.sessions),
        event: textEvent('e-2'),
      })
    await one.approvals.unlockChat(CHAT, 'turn')
    await expectRefusal(append('later'), 'lock-lost')
    await one.approvals.unlockChat(openRun, 'first')
    await append('e-3')
    expect(idsOf(await readSession(two.sessions))).toEqual(['e-1', 'e-2', 'e-3'])
  })

  test('[ST1860] of writes to many chats at the same moment, each has its own result', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    const sessions: Session[] = []
    for (let number = 0; number < 9; number += 1) {
      const chatId = `chat-${number}`
      const session = await one.sessions.createSession({ ...key, sessionId: chatId })
      const ref = { ...CHAT, chatId }
      expect(await one.approvals.lockChat(ref, lockOf('first', 60_000))).toBe(true)
      if (number % 3 === 1) await two.approvals.lockChat(ref, lockOf('second', 0))
      if (number % 3 === 2) await two.sessions.deleteSession({ ...key, sessionId: chatId })
      sessions.push(session)
    }
    const append = async (session: Session, id: string): Promise<string | undefined> => {
      const appended = one.sessions.appendEvent({ session, event: textEvent(id) })
      return appended.then(
        () => undefined,
        (error: unknown) => (error instanceof StoreError ? error.code : String(error)),
      )
    }
    const results = await Promise.all(
      ['e-1', 'e-2'].flatMap((id) => sessions.map((session) => append(session, id))),
    )
    const expected = [undefined, 'lock-lost', 'session-gone']
    expect(results).toEqual(results.map((_, index) => expected[index % 3]))
    for (const [index, { id }] of sessions.entries()) {
      const stored = await two.sessions.getSession({ ...key, sessionId: id })
      const found = [['e-1', 'e-2'], [], undefined][index % 3]
      expect(stored && idsOf(stored)).toEqual(found)
    }
  })

  test('[ST80] the response of a call is stored although its process unlocks the chat meanwhile', async () => {
    await using database = await open()
    const { sessions, approvals } = await database.open()
    if (!canAppendResponse(sessions)) return
    const session = await sessions.createSession(key)
    const call = { functionCall: { id: 'call-1', name: 'pay', args: {} } }
    const answer = { functionResponse: { id: 'call-1', name: 'pay', response: {} } }
    const eventOf = (id: string, part: typeof call | typeof answer) =>
      textEvent(id, { content: { role: 'model', parts: [part] } })
    await sessions.appendEvent({ session, event: eventOf('made', call) })
    for (let round = 0; round < 10; round += 1) {
      expect(await approvals.lockChat(CHAT, lockOf(`lock-${round}`, 60_000))).toBe(true)
      const event = eventOf(`answered-${round}`, answer)
      const stored = sessions.appendResponse({ session, event }, ['call-1'])
      // The store has begun to write.
      await setImmediate()
      await approvals.unlockChat(CHAT, `lock-${round}`)
      expect(await stored).toBe(true)
    }
    expect(idsOf(await readSession(sessions))).toHaveLength(11)
  })

  test('[ST80] an event is either before a takeover of the chat, or not stored', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    const session = await one.sessions.createSession(key)
    expect(await one.approvals.lockChat(CHAT, lockOf('first', 60_000))).toBe(true)
    const appends = Array.from({ length: 10 }, async (_, number) => {
      const append = one.sessions.appendEvent({ session, event: textEvent(`e-${number}`) })
      return append.then(() => true).catch(() => false)
    })
    expect(await two.approvals.lockChat(CHAT, lockOf('second', 0))).toBe(true)
    const seen = idsOf(await readSession(two.sessions))
    const stored = (await Promise.all(appends)).filter(Boolean)
    expect(idsOf(await readSession(two.sessions))).toEqual(seen)
    expect(stored).toHaveLength(seen.length)
  })
}

function testLockedSessions(test: ContractTest, open: Open): void {
  test('[ST621] a session that is read with its chat lock has all events, and is used once', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    const { sessions, approvals } = one
    if (!canReadLocked(sessions)) return
    const session = await two.sessions.createSession(key)
    const append = (id: string) => two.sessions.appendEvent({ session, event: textEvent(id) })
    await append('e-1')
    await readSession(sessions)
    await append('e-2')
    expect(await approvals.lockChat(CHAT, reading('first'))).toBe(true)
    const locked = await sessions.getLockedSession(key)
    expect(locked && idsOf(locked)).toEqual(['e-1', 'e-2'])
    // This process has not locked the chat of the other one, which may write.
    await append('e-3')
    const again = await sessions.getLockedSession(key)
    expect(again && idsOf(again)).toEqual(['e-1', 'e-2', 'e-3'])
    await approvals.unlockChat(CHAT, 'first')
    // A long session is read completely.
    for (let index = 0; index < 300; index += 1) await append(`long-${index}`)
    expect(await approvals.lockChat(CHAT, reading('second'))).toBe(true)
    expect(idsOf(await sessions.getOrCreateLockedSession(key)).length).toBe(303)
    await approvals.unlockChat(CHAT, 'second')
  })

  test('[ST621] a session that is read with its chat lock has what this process has written since', async () => {
    await using database = await open()
    const { sessions, approvals } = await database.open()
    if (!canReadLocked(sessions)) return
    expect(await approvals.lockChat(CHAT, reading('first'))).toBe(true)
    expect(await sessions.getLockedSession(key)).toBe(undefined)
    expect(await approvals.lockChat(CHAT, reading('second'))).toBe(false)
    await approvals.unlockChat(CHAT, 'first')
    expect(await approvals.lockChat(CHAT, reading('third'))).toBe(true)
    const session = await sessions.getOrCreateLockedSession(key)
    await sessions.appendEvent({ session, event: textEvent('e-1') })
    await approvals.unlockChat(CHAT, 'third')
    const changes: readonly (readonly [string, () => Promise<unknown>, string[]])[] = [
      ['append', () => sessions.appendEvent({ session, event: textEvent('e-2') }), ['e-1', 'e-2']],
      ['rewind', () => sessions.rewind({ ...key, eventId: 'e-2' }), ['e-1']],
    ]
    for (const [token, change, left] of changes) {
      expect(await approvals.lockChat(CHAT, reading(token))).toBe(true)
      await change()
      const locked = await sessions.getLockedSession(key)
      expect(locked && idsOf(locked)).toEqual(left)
      await approvals.unlockChat(CHAT, token)
    }
  })

  test('[ST730] the session of a new chat exists with its first event, and not after its lock has ended', async () => {
    await using database = await open()
    const [{ sessions, approvals }, two] = [await database.open(), await database.open()]
    if (!canReadLocked(sessions)) return
    const other = await two.sessions.createSession({ ...key, sessionId: 'other' })
    const event = deltaEvent('e-0', { 'app:size': 'large' })
    await two.sessions.appendEvent({ session: other, event })
    expect(await approvals.lockChat(CHAT, reading('first'))).toBe(true)
    const session = await sessions.getOrCreateLockedSession(key)
    expect(session.state).toEqual({ 'app:size': 'large' })
    // A plugin may read the session before its first event.
    expect((await sessions.getSession(key))?.events).toEqual([])
    const append = (id: string) => sessions.appendEvent({ session, event: textEvent(id) })
    await Promise.all([append('e-1'), append('e-2')])
    expect(idsOf(await readSession(two.sessions))).toEqual(['e-1', 'e-2'])
    await sessions.deleteSession(key)
    await expectRefusal(append('e-3'), 'session-gone')
    await approvals.unlockChat(CHAT, 'first')
  })

  test('[ST730] a process that has lost its lock does not create a session', async () => {
    await using database = await open()
    const [{ sessions, approvals }, two] = [await database.open(), await database.open()]
    if (!canReadLocked(sessions)) return
    expect(await approvals.lockChat(CHAT, reading('first'))).toBe(true)
    const session = await sessions.getOrCreateLockedSession(key)
    expect(await two.approvals.lockChat(CHAT, lockOf('second', 0))).toBe(true)
    await expectRefusal(sessions.appendEvent({ session, event: textEvent('e-1') }), 'lock-lost')
    expect((await two.sessions.getSession(key))?.events ?? []).toEqual([])
    await approvals.unlockChat(CHAT, 'first')
  })
}

function reading(token: string): ChatLock {
  return { ...lockOf(token, 60_000), reads: true }
}

/** Defines the tests of leases, of chat locks, and of calls that another worker reports. */
export function leaseContract(test: ContractTest, open: () => Promise<ApprovalSubject>): void {
  test('[LG14] a running call is stale if neither a heartbeat nor the claim has renewed the lease', async () => {
    await using subject = await open()
    const { store } = subject
    const [one = askedFor(), two = askedFor()] = numbered(2)
    await insert(store, one, two)
    for (const [approval, worker] of [
      [one, 'worker-1'],
      [two, 'worker-2'],
    ] as const) {
      const approved = step(approval, approve(hanako), NOON)
      const claimed = step(approved.next, claimOf(approval, worker), NOON)
      expect([await store.replace(approved), await store.replace(claimed)]).toEqual([true, true])
    }
    await subject.setClock(NOON + 99)
    expect(await ids(store.stale(100))).toEqual([])
    await store.heartbeat('worker-2')
    await subject.setClock(NOON + 100)
    expect(await ids(store.stale(100))).toEqual(['a-0'])
    await subject.setClock(NOON + 199)
    expect(await ids(store.stale(100))).toEqual(['a-0', 'a-1'])
    const running = after(one, approve(hanako), claimOf(one, 'worker-1'))
    const ended = step(running, { type: 'succeed', worker: 'worker-1', output: 1 })
    expect(await store.replace(ended)).toBe(true)
    expect(await ids(store.stale(100))).toEqual(['a-1'])
  })

  test('[LG290] a worker that ends its lease is known to have ended, and one that only stops to renew it is not', async () => {
    await using subject = await open()
    const { store } = subject
    if (!store.endLease || !store.hasEnded) return
    await store.heartbeat('w-1')
    await store.heartbeat('w-2')
    await store.endLease('w-1')
    await store.endLease('w-3')
    await subject.setClock(NOON + 3_600_000)
    await store.heartbeat('w-4')
    const workers = ['w-1', 'w-2', 'w-3', 'w-4', 'w-5']
    const ended = await Promise.all(workers.map(async (worker) => store.hasEnded?.(worker)))
    expect(ended).toEqual([true, false, true, false, false])
  })

  test('[LG29] one worker locks a chat until it unlocks it or its lease expires', async () => {
    await using subject = await open()
    const { store } = subject
    const lock = (worker: string, of = chat) => {
      const token = `of ${worker}`
      return store.lockChat(of, { worker, token, leaseMs: 100, background: worker === 'w-2' })
    }
    expect([await lock('w-1'), await lock('w-2'), await lock('w-1')]).toEqual([true, false, true])
    expect(await lock('w-2', { ...chat, chatId: 'other' })).toBe(true)
    await store.unlockChat(chat, 'of w-2')
    expect([await lock('w-2'), await store.listLocks('w-1')]).toEqual([
      false,
      [{ chat, token: 'of w-1' }],
    ])
    expect(await store.findLockHolder(chat)).toEqual({
      token: 'of w-1',
      background: false,
      lastSeenAt: NOON,
    })
    await store.unlockChat(chat, 'of w-1')
    expect([await store.findLockHolder(chat), await store.listLocks('w-1')]).toEqual([
      undefined,
      [],
    ])
    expect([await lock('w-2'), await lock('w-1')]).toEqual([true, false])
    await subject.setClock(NOON + 80)
    await store.heartbeat('w-2')
    expect(await store.findLockHolder(chat)).toEqual({
      token: 'of w-2',
      background: true,
      lastSeenAt: NOON + 80,
    })
    await subject.setClock(NOON + 179)
    expect(await lock('w-1')).toBe(false)
    const { appName, principalId } = chat
    const heldFor = (worker: string) =>
      store.listLockedByOthers({ appName, principalId, worker, leaseMs: 100 })
    expect((await heldFor('w-1')).toSorted()).toEqual([chat.chatId, 'other'].toSorted())
    expect(await heldFor('w-2')).toEqual([])
    await subject.setClock(NOON + 180)
    expect(await heldFor('w-1')).toEqual([])
    expect([await lock('w-1'), await lock('w-2')]).toEqual([true, false])
  })

  test('[AP16] deleting a chat cancels calls that have not started, and keeps the audit record', async () => {
    await using subject = await open()
    const { store } = subject
    const all = numbered(4)
    const [waiting = askedFor(), approved = askedFor(), running = askedFor(), denied = askedFor()] =
      all
    await insert(store, ...all, askedFor({ id: 'kept', chat: { ...chat, chatId: 'other' } }))
    for (const transition of [
      step(approved, approve(hanako)),
      step(running, approve(hanako)),
      step(after(running, approve(hanako)), claimOf(running)),
      step(denied, deny(hanako)),
    ])
      expect(await store.replace(transition)).toBe(true)
    expect(await ids(store.deleteChat(chat, 'deleted'))).toEqual([waiting.id, approved.id])
    const states = (await store.list({ limit: 10 })).map(({ state }) => state.name)
    expect(states).toEqual(['cancelled', 'cancelled', 'executing', 'denied', 'requested'])
    const events = (await collect(store.audit({ chat }))).map(({ event }) => event.type)
    expect(events.filter((type) => type === 'requested')).toHaveLength(4)
    expect(events.slice(-2)).toEqual(['cancelled', 'cancelled'])
    expect(await store.deleteChat(chat, 'deleted')).toEqual([])
    expect(await ids(store.list({ limit: 10, waitsFor: manager }))).toEqual([])
    expect(await ids(store.list({ limit: 10, waitsFor: hanako }))).toEqual(['kept'])
  })

  test('[LG38] an approved or ended call is unreported until it is marked as reported', async () => {
    await using subject = await open()
    const { store } = subject
    const [given, denied, running] = ['given', 'denied', 'running'].map((id) =>
      askedFor({ id, toolCallId: id }),
    ) as [Approval, Approval, Approval]
    await insert(store, askedFor({ id: 'asked', toolCallId: 'asked' }), given, denied, running)
    await insert(store, askedFor({ id: 'foreign', chat: { ...chat, appName: 'other' } }))
    for (const transition of [
      step(given, approve(hanako), NOON),
      step(denied, deny(hanako), NOON),
      step(running, approve(hanako), NOON),
      step(after(running, approve(hanako)), claimOf(running), NOON),
      step(askedFor({ id: 'foreign', chat: { ...chat, appName: 'other' } }), deny(hanako), NOON),
    ])
      expect(await store.replace(transition)).toBe(true)
    const unreported = (limit = 10) =>
      ids(store.unreported({ appName: 'demo', leaseMs: 100, limit }))
    // An ended call is left to the worker that ended it until its lease expires.
    expect(await unreported()).toEqual([given.id])
    await subject.setClock(NOON + 100)
    expect([await unreported(), await unreported(1)]).toEqual([[given.id, denied.id], [given.id]])
    // An approved call has not ended and cannot be marked as reported.
    await store.markReported(chat, [given.toolCallId, denied.toolCallId, 'none'])
    expect(await unreported()).toEqual([given.id])
    const succeeded = { type: 'succeed', worker: 'worker-1', output: 1 } as const
    const claimed = after(running, approve(hanako), claimOf(running))
    expect(await store.replace(step(claimed, succeeded, NOON))).toBe(true)
    await subject.setClock(NOON + 199)
    expect(await unreported()).toEqual([given.id])
    await subject.setClock(NOON + 200)
    expect(await unreported()).toEqual([given.id, running.id])
    await store.deleteChat(chat, 'deleted')
    await subject.setClock(NOON + 1_000)
    expect(await unreported()).toEqual([])
  })

  test('[LG38] a call that a worker with a valid lease may report is not unreported', async () => {
    await using subject = await open()
    const { store } = subject
    const approval = askedFor()
    await insert(store, approval)
    expect(await store.replace(step(approval, deny(hanako), NOON))).toBe(true)
    const unreported = () => ids(store.unreported({ appName: 'demo', leaseMs: 100, limit: 10 }))
    await store.lockChat(chat, { worker: 'w-1', token: 't-1', leaseMs: 100, background: false })
    await subject.setClock(NOON + 90)
    await store.heartbeat('w-1')
    await subject.setClock(NOON + 189)
    expect(await unreported()).toEqual([])
    await subject.setClock(NOON + 190)
    expect(await unreported()).toEqual([approval.id])
    await store.unlockChat(chat, 't-1')
    expect(await unreported()).toEqual([approval.id])
  })
}

import { setImmediate } from 'node:timers/promises'

import type { ApprovalStore, ChatLock } from '../../approvals/approval-store.ts'
import { canAppendResponse } from '../../agent/history/cut-events.ts'
import type { BrowserCall, Store } from '../store.ts'
import { canReadLocked } from '../store.ts'
import { approvalContract } from './approvals.contract.ts'
import { approve, askedFor, chat, entryOf, hanako, NOON, step } from './approval-fixture.ts'
import { credentialContract } from './credentials.contract.ts'
import type { ContractTest } from './contract-test.ts'
import { expect, expectRefusal } from './expect.ts'
import { deltaEvent, idsOf, key, readSession, textEvent } from './session-fixture.ts'
import { liveSessionContract } from './live-sessions.contract.ts'
import { sessionContract } from './sessions.contract.ts'
import { signalContract } from './signals.contract.ts'

/** An empty database for one test. Disposing of it closes its stores and removes it. */
export interface ContractDatabase extends AsyncDisposable {
  /** Opens a store on the database, as another process does. */
  open(): Promise<Store>
  /**
   * Sets the clocks of the database, the one for deadlines and the one for leases, in ms. All open stores use them. They
   * only move when a test sets them, and start at {@link CONTRACT_START}.
   */
  setClocks(at: number): void | Promise<void>
}

/** Options of {@link storeContract}. */
export interface StoreContractOptions {
  /** Defines a test: `test` of vitest, jest or `node:test`. */
  readonly test: ContractTest
  /** Creates an empty database. */
  readonly open: () => Promise<ContractDatabase>
}

/** The time at which the clocks of a {@link ContractDatabase} start, in ms since 1970. */
export const CONTRACT_START = NOON

/** Defines the tests that every {@link Store} must pass. Their names begin with the rules of `docs/spec`. */
export function storeContract({ test, open }: StoreContractOptions): void {
  sessionContract(test, async () => {
    const database = await open()
    const { sessions: service } = await database.open()
    return { service, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
  })
  approvalContract(test, async () => {
    const database = await open()
    let stores = [await database.open(), await database.open()]
    return {
      store: inTurns(stores),
      setClock: (at) => database.setClocks(at),
      restart: async () => {
        for (const store of stores) await store.close()
        stores = [await database.open(), await database.open()]
        return inTurns(stores)
      },
      [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
    }
  })
  rewindContract(test, open)
  lockContract(test, open)
  lockedSessionContract(test, open)
  browserCallContract(test, open)
  diagnosisContract(test, open)
  retentionContract(test, open)
  credentialContract(test, open)
  liveSessionContract(test, open)
  signalContract(test, open)
  wholeStoreContract(test, open)
}

type Open = StoreContractOptions['open']

/** An approval store that sends its calls to several stores in turn, like requests to several processes. */
function inTurns(stores: readonly Store[]): ApprovalStore {
  let turn = 0
  const target = stores[0]?.approvals ?? {}
  return new Proxy(target, {
    get: (_target, name) => {
      turn += 1
      const { approvals = {} } = stores[turn % stores.length] ?? {}
      const member: unknown = Reflect.get(approvals, name)
      // A method with private fields must be called on its own object.
      return typeof member === 'function' ? (member.bind(approvals) as unknown) : member
    },
  }) as ApprovalStore
}

function rewindContract(test: ContractTest, open: Open): void {
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

  test('[ST20] rewind to an unknown event is a conflict, and of an unknown session is session-gone', async () => {
    await using database = await open()
    const { sessions } = await database.open()
    const session = await sessions.createSession(key)
    await sessions.appendEvent({ session, event: textEvent('a') })
    await expectRefusal(sessions.rewind({ ...key, eventId: 'x' }), 'conflict')
    await expectRefusal(sessions.rewind({ ...key, userId: 'x', eventId: 'a' }), 'session-gone')
    expect(idsOf(await readSession(sessions))).toEqual(['a'])
  })

  test('[ST190] the response to a call is not stored if another process has removed the call', async () => {
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

function lockContract(test: ContractTest, open: Open): void {
  const CHAT = { appName: key.appName, principalId: key.userId, chatId: key.sessionId }

  test('[ST80] a process that has lost its chat lock to another one can neither append nor rewind', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    const session = await one.sessions.createSession(key)
    expect(await one.approvals.lockChat(CHAT, lock('first', 60_000))).toBe(true)
    await one.sessions.appendEvent({ session, event: textEvent('e-1') })
    // With a lease of 0 ms, every lock has expired.
    expect(await two.approvals.lockChat(CHAT, lock('second', 0))).toBe(true)
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
      expect(await approvals.lockChat(CHAT, lock(`lock-${round}`, 60_000))).toBe(true)
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
    expect(await one.approvals.lockChat(CHAT, lock('first', 60_000))).toBe(true)
    const appends = Array.from({ length: 10 }, async (_, number) => {
      const append = one.sessions.appendEvent({ session, event: textEvent(`e-${number}`) })
      return append.then(() => true).catch(() => false)
    })
    expect(await two.approvals.lockChat(CHAT, lock('second', 0))).toBe(true)
    const seen = idsOf(await readSession(two.sessions))
    const stored = (await Promise.all(appends)).filter(Boolean)
    expect(idsOf(await readSession(two.sessions))).toEqual(seen)
    expect(stored).toHaveLength(seen.length)
  })
}

function reading(token: string): ChatLock {
  return { ...lock(token, 60_000), reads: true }
}

function lockedSessionContract(test: ContractTest, open: Open): void {
  const CHAT = { appName: key.appName, principalId: key.userId, chatId: key.sessionId }
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
    for (const [token, change, ids] of changes) {
      expect(await approvals.lockChat(CHAT, reading(token))).toBe(true)
      await change()
      const locked = await sessions.getLockedSession(key)
      expect(locked && idsOf(locked)).toEqual(ids)
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
    expect(await two.approvals.lockChat(CHAT, lock('second', 0))).toBe(true)
    await expectRefusal(sessions.appendEvent({ session, event: textEvent('e-1') }), 'lock-lost')
    expect((await two.sessions.getSession(key))?.events ?? []).toEqual([])
    await approvals.unlockChat(CHAT, 'first')
  })
}

function lock(token: string, leaseMs: number): ChatLock {
  return { worker: `worker of ${token}`, token, leaseMs, background: false }
}

function browserCallContract(test: ContractTest, open: Open): void {
  test('[ST36] one process takes a browser call after its deadline, and another one if the first crashes', async () => {
    await using database = await open()
    const [{ browserCalls: one }, { browserCalls: two }] = [
      await database.open(),
      await database.open(),
    ]
    await one.add(waiting('late'), 200)
    await one.add(waiting('soon'), 100)
    // It keeps its deadline.
    await two.add(waiting('soon'), 1_000)
    await two.add(waiting('foreign', { ...chat, appName: 'other' }), 1)
    await two.add(waiting('kept', { ...chat, chatId: 'other' }), 300)
    await database.setClocks(NOON + 99)
    expect(await take(one)).toEqual([])
    await database.setClocks(NOON + 100)
    expect([await take(one), await take(two)]).toEqual([['soon'], []])
    await database.setClocks(NOON + 200)
    expect([await take(two, 1), await take(one, 1), await take(two)].flat().toSorted()).toEqual([
      'late',
      'soon',
    ])
    await one.drop(chat, ['soon', 'none'])
    await database.setClocks(NOON + 300)
    expect(await take(two)).toEqual(['kept', 'late'])
    await one.dropChat(chat)
    await database.setClocks(NOON + 400)
    expect(await take(one)).toEqual(['kept'])
  })
}

function diagnosisContract(test: ContractTest, open: Open): void {
  test('[ST380] the calls that wait for a browser are listed by chat or all, earliest deadline first', async () => {
    await using database = await open()
    const { browserCalls } = await database.open()
    // Optional: a store without it shows no browser calls in timelines.
    if (!browserCalls.list) return
    await browserCalls.add(waiting('late'), 200)
    await browserCalls.add(waiting('soon'), 100)
    await browserCalls.add(waiting('foreign', { ...chat, appName: 'other' }), 150)
    const list = async (filter: { readonly chat?: typeof chat; readonly limit: number }) =>
      (await browserCalls.list?.(filter))?.map((call) => [call.toolCallId, call.deadline])
    expect(await list({ chat, limit: 10 })).toEqual([
      ['soon', NOON + 100],
      ['late', NOON + 200],
    ])
    expect((await list({ limit: 2 }))?.map(([id]) => id)).toEqual(['soon', 'foreign'])
  })

  test('[ST381] the workers are listed with the age of their leases and with their locks', async () => {
    await using database = await open()
    const { approvals } = await database.open()
    if (!approvals.listWorkers) return
    await approvals.heartbeat('silent')
    await database.setClocks(NOON + 500)
    await approvals.heartbeat('busy')
    await approvals.lockChat(chat, { ...lock('t', 1_000), worker: 'busy', background: true })
    await approvals.lockChat({ ...chat, chatId: 'other' }, { ...lock('u', 1_000), worker: 'new' })
    await approvals.endLease?.('ended')
    await database.setClocks(NOON + 800)
    const workers = await approvals.listWorkers()
    expect(workers.map(({ worker, silentMs }) => `${worker} ${silentMs}`).toSorted()).toEqual([
      'busy 300',
      ...(approvals.endLease ? ['ended 300'] : []),
      'new 300',
      'silent 800',
    ])
    const busy = workers.find(({ worker }) => worker === 'busy')
    expect(busy?.locks).toEqual([{ chat, background: true, heldMs: 300 }])
    expect(workers.filter(({ ended }) => ended).map(({ worker }) => worker)).toEqual(
      approvals.endLease ? ['ended'] : [],
    )
  })
}

function waiting(toolCallId: string, of = chat): BrowserCall {
  return { chat: of, messageId: 'm-1', toolCallId }
}

async function take(store: Store['browserCalls'], limit = 10): Promise<string[]> {
  const calls = await store.takeDue({ appName: chat.appName, leaseMs: 100, limit })
  return calls.map(({ toolCallId }) => toolCallId).toSorted()
}

function wholeStoreContract(test: ContractTest, open: Open): void {
  test('[ST9] a second session with the same id is a conflict', async () => {
    await using database = await open()
    const { sessions } = await database.open()
    await sessions.createSession({ ...key, state: { a: 1 } })
    await expectRefusal(sessions.createSession(key), 'conflict')
    expect((await readSession(sessions)).state).toEqual({ a: 1 })
  })

  test('[ST10] many concurrent first uses create one session', async () => {
    await using database = await open()
    const stores = [await database.open(), await database.open()] as const
    const sessions = await Promise.all(
      Array.from({ length: 20 }, (_, by) =>
        stores[by % 2 === 0 ? 0 : 1].sessions.getOrCreateSession({ ...key, state: { by } }),
      ),
    )
    expect(new Set(sessions.map(({ state }) => state['by'])).size).toBe(1)
    expect((await stores[0].sessions.listSessions(key)).totalItems).toBe(1)
  })

  test('[ST13] an append to a deleted session is rejected and changes nothing', async () => {
    await using database = await open()
    const { sessions } = await database.open()
    const session = await sessions.createSession(key)
    await sessions.deleteSession(key)
    const event = deltaEvent('a', { k: 1, 'app:k': 1, 'user:k': 1 })
    await expectRefusal(sessions.appendEvent({ session, event }), 'session-gone')
    expect([session.events, session.state]).toEqual([[], {}])
    expect((await sessions.createSession(key)).state).toEqual({})
  })

  test('[ST16] a write by one process is visible to every other one at its next call', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    const session = await one.sessions.createSession(key)
    for (let round = 1; round <= 3; round += 1) {
      await one.sessions.appendEvent({ session, event: deltaEvent(`e-${round}`, { round }) })
      const read = await readSession(two.sessions)
      expect([read.events.length, read.state]).toEqual([round, { round }])
    }
    await one.sessions.appendEvent({ session, event: textEvent('e-2', { author: 'editor' }) })
    expect((await readSession(two.sessions)).events[1]?.author).toBe('editor')
  })

  test('[ST23] values that cannot be stored are rejected and change nothing', async () => {
    await using database = await open()
    const { sessions } = await database.open()
    const session = await sessions.createSession(key)
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    for (const event of [
      deltaEvent('a', { k: 1n }),
      deltaEvent('a', cycle),
      textEvent('a', { timestamp: Number.POSITIVE_INFINITY }),
    ])
      await expectRefusal(sessions.appendEvent({ session, event }), 'invalid')
    expect((await readSession(sessions)).events).toEqual([])
  })

  test('[ST24] names with NUL or lone surrogates are rejected everywhere', async () => {
    await using database = await open()
    const store = await database.open()
    const { sessions } = store
    const session = await sessions.createSession(key)
    for (const bad of ['a\0b', 'a\ud800']) {
      await expectRefusal(sessions.getSession({ ...key, sessionId: bad }), 'invalid')
      await expectRefusal(sessions.listSessions({ appName: bad }), 'invalid')
      await expectRefusal(sessions.deleteSession({ ...key, appName: bad }), 'invalid')
      await expectRefusal(sessions.rewind({ ...key, eventId: bad }), 'invalid')
      await expectRefusal(store.secret(bad), 'invalid')
      await expectRefusal(
        sessions.appendEvent({ session, event: { ...textEvent('a'), id: bad } }),
        'invalid',
      )
    }
  })

  test('[ST26] a secret is 32 random bytes, created once and kept', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    const [secret, same] = await Promise.all([one.secret('a'), two.secret('a')])
    expect(secret).toHaveLength(32)
    expect(same).toEqual(secret)
    expect(await one.secret('b')).not.toEqual(secret)
  })

  test('[ST31] after close, which may be called twice, every call fails with closed', async () => {
    await using database = await open()
    const store = await database.open()
    const session = await store.sessions.createSession(key)
    await store.close()
    await store.close()
    await expectRefusal(store.sessions.getSession(key), 'closed')
    await expectRefusal(store.sessions.appendEvent({ session, event: textEvent('a') }), 'closed')
    await expectRefusal(store.secret('a'), 'closed')
    await expectRefusal(store.approvals.get('a'), 'closed')
  })

  test('[ST180] an entry of the chat list has one agent, a name and a note', async () => {
    await using database = await open()
    const [{ chats: one }, { chats: two }] = [await database.open(), await database.open()]
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, by) => (by % 2 ? one : two).assignAgent(chat, `a${by}`)),
    )
    const [agent = ''] = answers
    expect(new Set(answers).size).toBe(1)
    await one.note(chat, { title: 'Hello', createdAt: 5 })
    await two.rename(chat, 'A name')
    const find = async () => (await two.find(chat, [chat.chatId, 'none'])).get(chat.chatId)
    expect(await find()).toEqual({ agent, name: 'A name', title: 'Hello', createdAt: 5 })
    await one.forgetNote(chat)
    expect(await find()).toEqual({ agent, name: 'A name' })
    await one.drop(chat)
    expect(await find()).toBeUndefined()
    expect(await two.assignAgent(chat, 'other')).toBe('other')
  })

  test('[LG91] an audit record that several processes have written is intact', async () => {
    await using database = await open()
    const [{ approvals: one }, { approvals: two }] = [await database.open(), await database.open()]
    const quota = { perChat: 16, perPrincipal: 100 }
    const asked = Array.from({ length: 6 }, (_, index) =>
      askedFor({ id: `a-${index}`, toolCallId: `c-${index}` }),
    )
    await Promise.all(
      asked.map((approval, index) =>
        (index % 2 ? one : two).insert(approval, entryOf(approval), quota),
      ),
    )
    await Promise.all(
      asked.map((approval, index) =>
        (index % 2 ? two : one).replace(step(approval, approve(hanako))),
      ),
    )
    expect(await one.lastSeq()).toBe(12)
    // Optional: for databases that other programs can write to.
    const verified = await two.verifyAudit?.()
    if (verified) expect([verified.entries, verified.fault]).toEqual([12, undefined])
  })
}

function retentionContract(test: ContractTest, open: Open): void {
  test('[ST310] an unused chat is removed, unless it is locked or has an open approval', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    const { retention } = two
    // Optional: without it, a bridge removes nothing.
    if (!retention) return
    await one.sessions.createSession(key)
    const unused = { unusedMs: 60_000, leaseMs: 1_000 }
    await database.setClocks(Date.now() + 1_000)
    expect(await retention.removeChat(chat, unused)).toBe(false)
    await database.setClocks(Date.now() + 120_000)
    expect(await one.approvals.lockChat(chat, lock('t', 1_000))).toBe(true)
    expect(await retention.listUnused({ ...unused, limit: 10 })).toEqual([])
    expect(await retention.removeChat(chat, unused)).toBe(false)
    await one.approvals.unlockChat(chat, 't')
    const asked = askedFor()
    const quota = { perChat: 10, perPrincipal: 10 }
    expect(await one.approvals.insert(asked, entryOf(asked), quota)).toBe('inserted')
    expect(await retention.removeChat(chat, unused)).toBe(false)
    await one.approvals.deleteChat(chat, 'of the test')
    expect(await retention.listUnused({ ...unused, limit: 10 })).toEqual([chat])
    expect(await retention.removeChat(chat, unused)).toBe(true)
    expect(await one.sessions.getSession(key)).toBe(undefined)
  })
}

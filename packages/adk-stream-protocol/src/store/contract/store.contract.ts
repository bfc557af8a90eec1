import type { ApprovalStore } from '../../approvals/approval-store.ts'
import type { Store } from '../store.ts'
import type { BrowserCall } from '../tables/browser-calls.ts'
import { approvalContract } from './approvals.contract.ts'
import type { ContractTest, StoreContractOptions } from './contract-test.ts'
import { expect, expectRefusal } from './contract-test.ts'
import {
  approve,
  askedFor,
  chat,
  deltaEvent,
  entryOf,
  hanako,
  key,
  lockOf,
  NOON,
  readSession,
  step,
  textEvent,
} from './fixtures.ts'
import { lockContract } from './locks.contract.ts'
import { optionalContract } from './optional.contract.ts'
import { sessionContract } from './sessions.contract.ts'

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
  lockContract(test, open)
  testBrowserCalls(test, open)
  testDiagnosis(test, open)
  optionalContract(test, open)
  testWholeStore(test, open)
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

function testBrowserCalls(test: ContractTest, open: Open): void {
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

function testDiagnosis(test: ContractTest, open: Open): void {
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

  test('[ST380] the workers are listed with the age of their leases and with their locks', async () => {
    await using database = await open()
    const { approvals } = await database.open()
    if (!approvals.listWorkers) return
    await approvals.heartbeat('silent')
    await database.setClocks(NOON + 500)
    await approvals.heartbeat('busy')
    await approvals.lockChat(chat, { ...lockOf('t', 1_000), worker: 'busy', background: true })
    await approvals.lockChat({ ...chat, chatId: 'other' }, { ...lockOf('u', 1_000), worker: 'new' })
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

function testWholeStore(test: ContractTest, open: Open): void {
  test('[ST9] a second session with the same id is a conflict', async () => {
    await using database = await open()
    const { sessions } = await database.open()
    await sessions.createSession({ ...key, state: { a: 1 } })
    await expectRefusal(sessions.createSession(key), 'conflict')
    expect((await readSession(sessions)).state).toEqual({ a: 1 })
  })

  test('[ST9] many concurrent first uses create one session', async () => {
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

  test('[ST22] values that cannot be stored are rejected and change nothing', async () => {
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

  test('[ST22] names with NUL or lone surrogates are rejected everywhere', async () => {
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

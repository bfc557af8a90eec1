import type { Signal, Signals } from '../../relay/relay.ts'
import type { Store } from '../store.ts'
import type { NewNotice } from '../tables/notices.ts'
import type { ContractDatabase, ContractTest, StoreContractOptions } from './contract-test.ts'
import { expect } from './contract-test.ts'
import type { Grant, GrantWrite } from '../../approvals/grant.ts'
import {
  approve,
  askedFor,
  chat,
  entryOf,
  hanako,
  key,
  lockOf,
  NOON,
  QUOTA,
  step,
} from './fixtures.ts'

type Open = StoreContractOptions['open']

/** Defines the tests of the parts that a store may leave out: retention, credentials, live sessions, signals, notices, grants and personal records. */
export function optionalContract(test: ContractTest, open: Open): void {
  testRetention(test, open)
  testCredentials(test, open)
  testLiveSessions(test, open)
  testSignals(test, open)
  testNotices(test, open)
  testGrants(test, open)
  testPersonalRecords(test, open)
}

/** Opens two stores on a database, and returns a part of each. */
async function openTwo<Part>(
  database: ContractDatabase,
  pick: (store: Store) => Part,
): Promise<[Part, Part]> {
  return [pick(await database.open()), pick(await database.open())]
}

function testRetention(test: ContractTest, open: Open): void {
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
    expect(await one.approvals.lockChat(chat, lockOf('t', 1_000))).toBe(true)
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

const { chatId: _chatId, ...owner } = chat
const other = { ...owner, principalId: 'somebody else' }
const sealed = (value: string): Uint8Array => Buffer.from(value)

function testCredentials(test: ContractTest, open: Open): void {
  test('[ST430] a credential belongs to one principal and is replaced by the next one of its name', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database, ({ credentials }) => credentials)
    if (!one || !two) return
    expect(await one.save(owner, { name: 'a', sealed: sealed('1') })).toBe(true)
    expect(await two.save(owner, { name: 'a', sealed: sealed('2') })).toBe(true)
    expect(await two.save(other, { name: 'a', sealed: sealed('3') })).toBe(true)
    const [stored, ...rest] = await two.list(owner)
    expect([stored?.name, text(stored?.sealed), rest.length]).toEqual(['a', '2', 0])
    expect(await one.remove(owner, 'a')).toBe(true)
    expect(await two.remove(owner, 'a')).toBe(false)
    expect([await two.list(owner), (await two.list(other)).length]).toEqual([[], 1])
  })

  test('[ST430] a credential that was replaced or removed meanwhile is not written', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database, ({ credentials }) => credentials)
    if (!one || !two) return
    await one.save(owner, { name: 'a', sealed: sealed('1') })
    const version = (await one.list(owner))[0]?.version ?? 0
    expect(await two.save(owner, { name: 'a', sealed: sealed('2'), version })).toBe(true)
    expect(await one.save(owner, { name: 'a', sealed: sealed('3'), version })).toBe(false)
    await two.remove(owner, 'a')
    expect(await one.save(owner, { name: 'a', sealed: sealed('4'), version: version + 1 })).toBe(
      false,
    )
    expect(await two.list(owner)).toEqual([])
  })

  test('[ST431] one process at a time may refresh a credential, until it is stored or the lease ends', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database, ({ credentials }) => credentials)
    if (!one || !two) return
    await one.save(owner, { name: 'a', sealed: sealed('1') })
    const version = (await one.list(owner))[0]?.version ?? 0
    const refresh = { name: 'a', version, leaseMs: 1_000 }
    const locked = await Promise.all(
      [one, two, one, two].map((store) => store.lockRefresh(owner, refresh)),
    )
    expect(locked.filter(Boolean).length).toBe(1)
    await database.setClocks(NOON + 2_000)
    expect(await two.lockRefresh(owner, refresh)).toBe(true)
    await two.save(owner, { name: 'a', sealed: sealed('2'), version })
    expect(await one.lockRefresh(owner, refresh)).toBe(false)
    expect(await one.lockRefresh(owner, { ...refresh, version: version + 1 })).toBe(true)
  })

  test('[ST432] a sign-in that has begun can be taken once, before it expires', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database, ({ credentials }) => credentials)
    if (!one || !two) return
    const { appName, principalId } = owner
    for (const id of ['early', 'late'])
      await one.addAttempt(owner, { id, sealed: sealed(id), maxAgeMs: 1_000 })
    const taken = await Promise.all(
      [one, two, one, two].map((store) => store.takeAttempt(appName, 'early')),
    )
    const [first, ...more] = taken.filter((attempt) => attempt !== undefined)
    expect([first?.principalId, text(first?.sealed), more]).toEqual([principalId, 'early', []])
    expect(await one.takeAttempt('another app', 'late')).toBe(undefined)
    await database.setClocks(NOON + 1_000)
    expect(await two.takeAttempt(appName, 'late')).toBe(undefined)
  })

  test('[ST315] unused credentials are removed, and those of a principal with the principal', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database, ({ credentials }) => credentials)
    if (!one || !two) return
    const { retention } = await database.open()
    await one.save(owner, { name: 'a', sealed: sealed('1') })
    await one.save(other, { name: 'a', sealed: sealed('2') })
    await one.addAttempt(owner, { id: 'attempt', sealed: sealed('3'), maxAgeMs: 100_000 })
    await database.setClocks(NOON + 5_000)
    await two.touch(owner, 'a')
    await two.removeOld(1_000)
    expect([(await one.list(owner)).length, (await one.list(other)).length]).toEqual([1, 0])
    if (!retention) return
    await retention.removeOwner(owner)
    expect(await one.list(owner)).toEqual([])
    expect(await one.takeAttempt(owner.appName, 'attempt')).toBe(undefined)
  })
}

function text(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString()
}

/** As the bridge locks a live session: in a namespace of its own. */
const live = { ...chat, appName: `${chat.appName} live` }
const otherChat = { ...chat, chatId: 'other' }
const DAY_MS = 86_400_000

function testLiveSessions(test: ContractTest, open: Open): void {
  test('[ST622] the state of a live session is stored by the holder of its lock, and read by every process', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    if (!one.liveSessions || !two.liveSessions) return
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
    const save = (store: Store, token: string, state: Uint8Array) =>
      store.liveSessions?.save(chat, state, { lock: { chat: live, token }, maxAgeMs: DAY_MS })
    // Without a lock, nothing is stored.
    expect(await save(one, 'first', bytes)).toBe(false)
    expect(await one.approvals.lockChat(live, lockOf('first', 60_000))).toBe(true)
    expect(await save(one, 'first', bytes)).toBe(true)
    expect(await read(two)).toEqual([...bytes])
    expect(await read(two, otherChat)).toBe(undefined)
    expect(await save(one, 'first', Uint8Array.of(1))).toBe(true)
    expect(await save(two, 'another', Uint8Array.of(2))).toBe(false)
    expect(await read(two)).toEqual([1])
    // With a lease of 0 ms, every lock has expired.
    expect(await two.approvals.lockChat(live, lockOf('second', 0))).toBe(true)
    expect(await save(one, 'first', Uint8Array.of(3))).toBe(false)
    expect(await read(one)).toEqual([1])
    expect(await save(two, 'second', Uint8Array.of(4))).toBe(true)
    expect(await read(one)).toEqual([4])
    await one.liveSessions.drop(chat)
    expect(await read(two)).toBe(undefined)
    await one.liveSessions.drop(chat)
  })

  test('[ST622] states of live sessions that are too old are removed when another one is stored', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    if (!one.liveSessions) return
    const lock = { chat: live, token: 'first' }
    expect(await one.approvals.lockChat(live, lockOf('first', 2 * DAY_MS))).toBe(true)
    const options = { lock, maxAgeMs: 1_000 }
    expect(await one.liveSessions.save(otherChat, Uint8Array.of(1), options)).toBe(true)
    await database.setClocks(NOON + 900)
    expect(await one.liveSessions.save(chat, Uint8Array.of(2), options)).toBe(true)
    expect(await read(two, otherChat)).toEqual([1])
    await database.setClocks(NOON + 1_100)
    expect(await one.liveSessions.save(chat, Uint8Array.of(3), options)).toBe(true)
    expect([await read(two, otherChat), await read(two)]).toEqual([undefined, [3]])
  })
}

async function read({ liveSessions }: Store, of = chat): Promise<number[] | undefined> {
  const state = await liveSessions?.find(of)
  return state && [...state]
}

function testSignals(test: ContractTest, open: Open): void {
  test('[ST622] a signal is taken by the process that it is sent to, with its content', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database, (store) => store.relay ?? store.signals)
    if (!one || !two) return
    const body = { text: 'ünï "quoted" \u0001', list: [1, null, { deep: true }], empty: {} }
    const signal = { id: 's-1', from: 'w-1', kind: 'stop', body }
    await one.send('w-2', signal)
    expect(await two.take('w-3')).toEqual([])
    expect(await one.take('w-1')).toEqual([])
    expect(await two.take('w-2')).toEqual([signal])
    expect(await two.take('w-2')).toEqual([])
  })

  test('[ST622] each signal is taken once, although it was sent again and several processes take', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database, (store) => store.relay ?? store.signals)
    if (!one || !two) return
    const signals = Array.from({ length: 12 }, (_, index) => signalOf(`s-${index}`))
    await Promise.all(
      signals.flatMap((signal, index) => {
        const [sender, repeated] = index % 2 ? [one, two] : [two, one]
        // A process that loses its connection does not know whether a signal was sent, and repeats it.
        return index % 3 ? [sender.send('w', signal)] : [sendTwice([sender, repeated], signal)]
      }),
    )
    const taken = await Promise.all([one, two, one, two].map((each) => each.take('w')))
    const ids = taken.flatMap((each) => each.map(({ id }) => id))
    expect(new Set(ids).size).toBe(signals.length)
    expect(ids.length).toBe(signals.length)
    expect(await one.take('w')).toEqual([])
  })
}

async function sendTwice(senders: readonly Signals[], signal: Signal): Promise<void> {
  for (const sender of senders) await sender.send('w', signal)
}

function signalOf(id: string): Signal {
  return { id, from: 'w-1', kind: 'decide', body: null }
}

/** A notice to the channel `chat` that is due at once. */
function noticeOf(position: number, fields: Partial<NewNotice> = {}): NewNotice {
  return {
    id: `${position}-0`,
    channel: 'chat',
    approvalId: 'a',
    principalId: chat.principalId,
    position,
    asks: false,
    afterMs: 0,
    body: '{}',
    ...fields,
  }
}

const byText = (one: unknown, two: unknown): number => String(one).localeCompare(String(two))

const claimOf = (worker: string) => ({ worker, channels: ['chat'], claimMs: 1_000, limit: 10 })

function testNotices(test: ContractTest, open: Open): void {
  test('[ST1560] notices are planned once for each position, which starts at the end of the audit record', async () => {
    await using database = await open()
    const first = await database.open()
    const asked = askedFor()
    const quota = { perChat: 10, perPrincipal: 10 }
    expect(await first.approvals.insert(asked, entryOf(asked), quota)).toBe('inserted')
    const [one, two] = await openTwo(database, ({ notices }) => notices)
    // Optional: without it, a bridge tells nobody.
    if (!one || !two) return
    const from = await one.position('demo')
    expect(from).toBe(await first.approvals.lastSeq())
    const planned = { from, to: from + 2, ended: [], notices: [noticeOf(1), noticeOf(2)] }
    const results = await Promise.all([one.plan('demo', planned), two.plan('demo', planned)])
    expect(results.filter(Boolean)).toHaveLength(1)
    expect(await two.position('demo')).toBe(from + 2)
    expect(await two.list('demo', 'a')).toHaveLength(2)
    expect(await two.list('another', 'a')).toEqual([])
  })

  test('[ST1561] a notice is claimed by one worker, after the earlier ones of its approval and channel', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database, ({ notices }) => notices)
    if (!one || !two) return
    const from = await one.position('demo')
    const notices = [
      noticeOf(1),
      noticeOf(2),
      noticeOf(3, { approvalId: 'b' }),
      noticeOf(4, { channel: 'phone' }),
    ]
    await one.plan('demo', { from, to: from + 1, ended: [], notices })
    const claims = await Promise.all([
      one.claim('demo', claimOf('w1')),
      two.claim('demo', claimOf('w2')),
    ])
    const ids = claims.flat().map(({ id }) => id)
    expect(ids.toSorted()).toEqual(['1-0', '3-0'])
    // The worker has ended. Its notices are given to the next one, and its result is ignored.
    await database.setClocks(NOON + 1_000)
    const again = await two.claim('demo', claimOf('w3'))
    expect(again.map(({ id, attempts }) => [id, attempts]).toSorted(byText)).toEqual([
      ['1-0', 2],
      ['3-0', 2],
    ])
    await one.settle('demo', { id: '1-0', worker: 'w1', state: 'failed' })
    await one.settle('demo', {
      id: '1-0',
      worker: 'w3',
      state: 'waiting',
      retryMs: 500,
      answer: 'Down',
    })
    expect(await one.claim('demo', claimOf('w1'))).toEqual([])
    await database.setClocks(NOON + 1_500)
    const [retried, ...rest] = await one.claim('demo', claimOf('w1'))
    expect([retried?.id, retried?.answer, rest.length]).toEqual(['1-0', 'Down', 0])
    await one.settle('demo', { id: '1-0', worker: 'w1', state: 'sent', reference: 'r' })
    expect((await two.claim('demo', claimOf('w2'))).map(({ id }) => id)).toEqual(['2-0'])
    expect((await two.list('demo', 'a')).find(({ id }) => id === '1-0')?.reference).toBe('r')
  })

  test('[ST1562] a request that is not due ends with its approval, and a channel with its receiver', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database, ({ notices }) => notices)
    if (!one || !two) return
    const from = await one.position('demo')
    const notices = [
      noticeOf(1, { asks: true }),
      noticeOf(2, { asks: true, afterMs: 60_000, channel: 'phone' }),
      // It tells of a person, and asks for nothing.
      noticeOf(4, { approvalId: 'b' }),
    ]
    await one.plan('demo', { from, to: from + 1, ended: [], notices })
    expect(await two.listNotified('demo', ['a', 'b'])).toEqual([
      { approvalId: 'a', channel: 'chat' },
    ])
    await two.plan('demo', { from: from + 1, to: from + 2, ended: ['a'], notices: [noticeOf(3)] })
    const states = async () =>
      Object.fromEntries((await one.list('demo', 'a')).map(({ id, state }) => [id, state]))
    expect(await states()).toEqual({ '1-0': 'waiting', '2-0': 'ended', '3-0': 'waiting' })
    await one.disable('demo', { channel: 'chat', address: 'x', reason: 'Gone' })
    expect(await states()).toEqual({ '1-0': 'failed', '2-0': 'ended', '3-0': 'failed' })
    expect(await two.listDisabled('demo')).toEqual([{ channel: 'chat', address: 'x' }])
    await two.removeOld(60_000)
    expect(await one.list('demo', 'a')).toHaveLength(3)
    await database.setClocks(NOON + 60_000)
    await two.removeOld(60_000)
    expect(await one.list('demo', 'a')).toEqual([])
  })

  test('[ST1563] principals take turns, and the notices of a deleted principal are removed', async () => {
    await using database = await open()
    const [store, second] = [await database.open(), await database.open()]
    const { notices: one, retention } = store
    const { notices: two } = second
    if (!one || !two) return
    const from = await one.position('demo')
    const many = Array.from({ length: 5 }, (_, index) =>
      noticeOf(index, { approvalId: `a${index}` }),
    )
    const notices = [...many, noticeOf(9, { approvalId: 'b', principalId: 'other' })]
    await one.plan('demo', { from, to: from + 1, ended: [], notices })
    const claimed = await two.claim('demo', { ...claimOf('w'), limit: 2 })
    expect(claimed.map(({ id }) => id).toSorted()).toEqual(['0-0', '9-0'])
    await retention?.removeOwner(owner)
    if (retention) expect(await one.list('demo', 'a0')).toEqual([])
    expect(await one.list('demo', 'b')).toHaveLength(1)
  })
}

const grant: Grant = {
  id: 'grant-1',
  chat,
  approvalId: 'approval-1',
  toolCallId: 'call-1',
  toolName: 'process_payment',
  by: hanako.id,
  offer: { id: 'offer-1', effect: 'approve', free: [], maxUses: 2, scope: 'chat' },
  pinned: { recipient: '花子' },
  declaration: '',
  grantedAt: NOON,
  expiresAt: NOON + 60_000,
}

const use = (amount: number): GrantWrite => ({ type: 'use', owner, id: grant.id, amount })

function testGrants(test: ContractTest, open: Open): void {
  test('[ST1620] a grant is given and used in the transaction of an approval, within its limits and its time', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    // Optional: without it, nothing is offered.
    if (!one.grants || !two.grants) return
    const decide = async (id: string, writes: GrantWrite): Promise<string> => {
      const asked = askedFor({ id, toolCallId: id })
      const decided = { ...step(asked, approve(hanako), NOON), writes }
      return two.approvals.insert(asked, entryOf(asked), QUOTA, [decided])
    }
    await database.setClocks(NOON)
    expect(await decide('given', { type: 'open', grant, max: 100 })).toBe('inserted')
    expect(await one.grants.list(owner)).toEqual([{ ...grant, state: 'open', uses: 0, spent: 0 }])
    expect(await decide('used', use(60))).toBe('inserted')
    expect((await one.approvals.get('used'))?.state.name).toBe('approved')
    // More than the budget.
    expect(await decide('too much', use(41))).toBe('refused')
    expect(await one.approvals.get('too much')).toBe(undefined)
    expect(await decide('used again', use(40))).toBe('inserted')
    // More than its uses.
    expect(await decide('once more', use(0))).toBe('refused')
    expect((await two.grants.get(owner, grant.id))?.spent).toBe(100)
    expect(await two.grants.get(other, grant.id)).toBe(undefined)
    // A further one for the same tool replaces it.
    const next = { ...grant, id: 'grant-2' }
    expect(await decide('given again', { type: 'open', grant: next })).toBe('inserted')
    expect((await one.grants.get(owner, grant.id))?.state).toBe('replaced')
    const ended = await one.approvals.get('given again')
    const writes = { type: 'end', owner, id: 'grant-2', state: 'suspended' } as const
    const note = { type: 'grant-suspended', grantId: 'grant-2', chatId: 'chat-1' } as const
    if (!ended) throw new Error('It was stored.')
    const { next: noted, entry } = step(ended, { type: 'cancel', reason: 'of the test' }, NOON)
    const suspended = { next: noted, entry: { ...entry, event: note }, writes }
    expect(await one.approvals.replace(suspended)).toBe(true)
    expect((await one.grants.list(owner)).map(({ state }) => state)).toEqual(['suspended'])
    // Those of a plan replace those of earlier plans in the chat, and no others.
    const planned = (id: string, from = chat): Grant => ({ ...grant, id, plan: true, chat: from })
    const plan = { type: 'open-plan', chat, grants: [planned('a'), planned('b')] } as const
    expect(await decide('plan', plan)).toBe('inserted')
    expect(await decide('given beside', { type: 'open', grant: { ...grant, id: 'c' } })).toBe(
      'inserted',
    )
    const elsewhere = { ...chat, chatId: 'chat-2' }
    const far = { type: 'open-plan', chat: elsewhere, grants: [planned('d', elsewhere)] } as const
    expect(await decide('plan elsewhere', far)).toBe('inserted')
    const third = { type: 'open-plan', chat, grants: [planned('e')] } as const
    expect(await decide('next plan', third)).toBe('inserted')
    const found = (await one.grants.list(owner)).flatMap(({ id, state }) =>
      state === 'open' ? id : [],
    )
    expect(found).toEqual(['e', 'd', 'c'])
    await database.setClocks(NOON + 60_000)
    expect(await one.grants.list(owner)).toEqual([])
    await one.grants.remove(owner, 'grant-2')
    await two.grants.dropChat(chat)
    expect(await one.grants.get(owner, grant.id)).toBe(undefined)
  })
}

function testPersonalRecords(test: ContractTest, open: Open): void {
  test('[ST1564] a personal record is listed until its end, and a transition that requires it is stored only until then', async () => {
    await using database = await open()
    const [one, two] = [await database.open(), await database.open()]
    const { personalRecords: records } = one
    // Optional: without it, features that need it are refused.
    if (!records || !two.personalRecords) return
    await database.setClocks(NOON)
    const record = { kind: 'a', id: 'r-1', about: 'taro', body: '{}', forMs: 60_000 }
    await records.put(owner, record)
    await records.put(owner, { kind: 'a', id: 'r-2', body: '1' })
    await records.put(owner, { kind: 'a', id: 'r-2', body: '2' })
    await records.put(owner, { kind: 'b', id: 'r-1', body: '3' })
    await records.put(other, { kind: 'a', id: 'r-1', body: '4' })
    const listed = async (): Promise<string[]> =>
      (await two.personalRecords?.list(owner, 'a'))?.map(({ body }) => body) ?? []
    expect(await listed()).toEqual(['{}', '2'])
    const taro = { ...owner, principalId: 'taro' }
    expect(await two.personalRecords.listAbout(taro, 'a')).toEqual([
      {
        principalId: owner.principalId,
        id: 'r-1',
        about: 'taro',
        body: '{}',
        at: NOON,
        expiresAt: NOON + 60_000,
      },
    ])
    expect(await records.listAbout(taro, 'b')).toEqual([])
    const decide = async (id: string, recordId: string): Promise<string> => {
      const asked = askedFor({ id, toolCallId: id })
      const writes = { type: 'require-record', owner, kind: 'a', id: recordId } as const
      const decided = { ...step(asked, approve(hanako), NOON), writes }
      return two.approvals.insert(asked, entryOf(asked), QUOTA, [decided])
    }
    expect(await decide('with', 'r-1')).toBe('inserted')
    expect(await decide('without', 'r-3')).toBe('refused')
    await database.setClocks(NOON + 60_000)
    expect(await decide('after its end', 'r-1')).toBe('refused')
    expect(await listed()).toEqual(['2'])
    await records.removeOld()
    expect(await records.remove(owner, { kind: 'a', id: 'r-1' })).toBe(false)
    expect(await records.remove(owner, { kind: 'a', id: 'r-2' })).toBe(true)
    expect(await decide('removed', 'r-2')).toBe('refused')
    expect(await listed()).toEqual([])
  })
}

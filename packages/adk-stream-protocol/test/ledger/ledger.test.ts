import Database from 'libsql'
import { describe, expect, test } from 'vitest'
import { isRefusal, type Approval } from '../../src/approvals/approval.ts'
import { Ledger, type LedgerOptions } from '../../src/approvals/ledger.ts'
import { argsToRun } from '../../src/approvals/next-approval.ts'
import { MemoryApprovalStore } from './support/memory-approval-store.ts'
import { defer } from '../../src/shared/async.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import {
  chat,
  collect,
  hanako,
  manager,
  managerStep,
  NOON,
  requestOf,
  stranger,
  taken,
  termsOf,
} from './support/fixture.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'

function openLedger(options: Partial<LedgerOptions> = {}) {
  const clock = { now: NOON }
  const store = new MemoryApprovalStore(
    () => clock.now,
    () => clock.now,
  )
  return {
    clock,
    store,
    ledger: new Ledger({ store, appName: 'demo', worker: 'w-1', leaseMs: 100, ...options }),
  }
}

const yes = { by: hanako, approved: true }

test('[AP6] a late decision is refused, and the approval expires', async () => {
  const { clock, ledger } = openLedger()
  const changes: string[] = []
  ledger.onChange(({ state }) => changes.push(state.name))
  taken(await ledger.request(requestOf()))
  clock.now += 60_000
  expect(await ledger.decide('approval-1', yes)).toEqual({ refused: 'expired' })
  expect((await ledger.get('approval-1'))?.state).toEqual({ name: 'expired', at: clock.now })
  expect(changes).toEqual(['requested', 'expired'])
  expect(await ledger.decide('approval-1', yes)).toEqual({ refused: 'expired' })
})

test('[LG210] a decision that completes an approval also claims its call, in one commit', async () => {
  const { store, ledger } = openLedger()
  const changes: string[] = []
  ledger.onChange(({ state }) => changes.push(state.name))
  const asked = taken(await ledger.request(requestOf()))
  const replace = store.replace.bind(store)
  store.replace = () => Promise.reject(new Error('a second commit'))
  const result = await ledger.decideAndClaim(asked, yes, requestOf())
  store.replace = replace
  expect(result).toMatchObject({
    decided: { version: 1, state: { name: 'approved' } },
    claimed: { version: 2, state: { name: 'executing', worker: 'w-1' } },
  })
  expect(changes).toEqual(['requested', 'approved', 'executing'])
  expect(ledger.busy).toBe(true)
  const again = await ledger.decideAndClaim(asked, yes, requestOf())
  expect(again).toMatchObject({ refused: 'already-decided', state: { name: 'executing' } })
})

test.each([
  ['a vote before the last one', { by: manager, approved: true }, requestOf(), 'requested'],
  ['a denial', { by: manager, approved: false }, requestOf(), 'denied'],
])('[LG210] %s claims nothing', async (_, decision, call, state) => {
  const { ledger } = openLedger()
  const terms = { ...termsOf(), chain: [{ ...managerStep, count: 2 }] }
  const asked = taken(await ledger.request(requestOf({ terms })))
  const result = await ledger.decideAndClaim(asked, decision, call)
  expect(result).toMatchObject({ decided: { state: { name: state } }, claimed: undefined })
  expect(ledger.busy).toBe(false)
})

test('[LG210] a call that differs from the one shown is approved and not claimed', async () => {
  const { ledger } = openLedger()
  const asked = taken(await ledger.request(requestOf()))
  const result = await ledger.decideAndClaim(asked, yes, requestOf({ args: { amount: 1 } }))
  expect(result).toMatchObject({ decided: { state: { name: 'approved' } }, claimed: undefined })
  expect(ledger.busy).toBe(false)
})

test('[LG210] of two decisions of one process at the same time, one is refused and one claims or leaves the call approved', async () => {
  const { ledger } = openLedger()
  const asked = taken(await ledger.request(requestOf()))
  const results = await Promise.all([
    ledger.decideAndClaim(asked, yes, requestOf()),
    ledger.decideAndClaim(asked, { by: hanako, approved: false }, requestOf()),
  ])
  expect(results.filter((result) => 'refused' in result)).toHaveLength(1)
  const { state } = (await ledger.get('approval-1')) ?? {}
  expect(ledger.busy).toBe(state?.name === 'executing')
})

test('[LG210] a decision on an outdated approval uses the stored one', async () => {
  const { store, ledger } = openLedger()
  const other = new Ledger({ store, appName: 'demo', worker: 'w-2', leaseMs: 100 })
  const asked = taken(await ledger.request(requestOf()))
  taken(await other.cancel('approval-1', 'gone'))
  expect(await ledger.decideAndClaim(asked, yes, requestOf())).toEqual({ refused: 'cancelled' })
  expect(ledger.busy).toBe(false)
})

test('[LG3] the sweep expires due approvals and publishes the change', async () => {
  const { clock, ledger } = openLedger()
  taken(await ledger.request(requestOf()))
  taken(await ledger.request(requestOf({ id: 'b', toolCallId: 'b', deadlineMs: 90_000 })))
  expect(await ledger.expireDue()).toEqual([])
  clock.now += 60_000
  expect((await ledger.expireDue()).map(({ id }) => id)).toEqual(['approval-1'])
  expect((await ledger.pendingOf(chat)).map(({ id }) => id)).toEqual(['b'])
})

test('[LG19] a claim with another chat, call, tool or other arguments is refused', async () => {
  const { ledger } = openLedger()
  taken(await ledger.request(requestOf()))
  taken(await ledger.decide('approval-1', yes))
  for (const change of [
    { chat: { ...chat, chatId: 'other' } },
    { toolCallId: 'call-2' },
    { toolName: 'get_weather' },
    { args: { amount: 51, recipient: '花子' } },
  ])
    expect(await ledger.claim('approval-1', { ...requestOf(), ...change })).toEqual({
      refused: 'mismatch',
    })
  expect(taken(await ledger.claim('approval-1', requestOf())).state.name).toBe('executing')
})

test('[LG14] a worker whose lease expires loses its running calls', async () => {
  const { clock, store, ledger } = openLedger()
  const other = new Ledger({ store, appName: 'demo', worker: 'w-2', leaseMs: 100 })
  taken(await ledger.request(requestOf()))
  taken(await ledger.decide('approval-1', yes))
  taken(await ledger.claim('approval-1', requestOf()))
  clock.now += 99
  await ledger.heartbeat()
  clock.now += 99
  expect(await other.recover()).toEqual([])
  clock.now += 1
  expect((await other.recover()).map(({ state }) => state.name)).toEqual(['unknown'])
  expect(await ledger.succeed('approval-1', 1)).toEqual({
    refused: 'already-decided',
    state: { name: 'unknown', at: clock.now },
  })
})

test('[LG14] a worker that renews its lease at the last moment loses nothing', async () => {
  const { clock, store, ledger } = openLedger()
  taken(await ledger.request(requestOf()))
  taken(await ledger.decide('approval-1', yes))
  taken(await ledger.claim('approval-1', requestOf()))
  clock.now += 100
  // Its lease has expired, but it renews the lease before that is stored.
  const stale = store.stale.bind(store)
  store.stale = async (leaseMs) => {
    const found = await stale(leaseMs)
    expect(found).toHaveLength(1)
    await ledger.heartbeat()
    return found
  }
  const other = new Ledger({ store, appName: 'demo', worker: 'w-2', leaseMs: 100 })
  expect(await other.recover()).toEqual([])
  expect(taken(await ledger.succeed('approval-1', 1)).state.name).toBe('succeeded')
})

test.each([false, true])(
  '[AP81] a worker neither settles nor repeats a call that it runs itself (idempotent: %s)',
  async (idempotent) => {
    const { clock, store, ledger } = openLedger()
    taken(await ledger.request(requestOf({ terms: { ...termsOf(), idempotent } })))
    taken(await ledger.decide('approval-1', yes))
    expect(ledger.busy).toBe(false)
    taken(await ledger.claim('approval-1', requestOf()))
    expect(ledger.busy).toBe(true)
    clock.now += 10_000
    expect(await ledger.recover()).toEqual([])
    const other = new Ledger({ store, appName: 'demo', worker: 'w-2', leaseMs: 100 })
    const [lost] = await other.recover()
    expect(lost?.state.name).toBe(idempotent ? 'approved' : 'unknown')
    expect(await ledger.claim('approval-1', requestOf())).toEqual({ refused: 'not-approved' })
    expect(await ledger.succeed('approval-1', 1)).toHaveProperty('refused')
    expect(ledger.busy).toBe(false)
  },
)

test('[LG82] an outcome that could not be stored is stored later, and the call is kept until then', async () => {
  const { store, ledger } = openLedger()
  taken(await ledger.request(requestOf()))
  taken(await ledger.decide('approval-1', yes))
  taken(await ledger.claim('approval-1', requestOf()))
  const replace = store.replace.bind(store)
  store.replace = () => Promise.reject(new Error('the disk is full'))
  await expect(ledger.succeed('approval-1', { paid: 50 })).rejects.toThrow('the disk is full')
  await expect(ledger.recover()).rejects.toThrow('the disk is full')
  expect(ledger.busy).toBe(true)
  store.replace = replace
  expect(await ledger.recover()).toMatchObject([
    { state: { name: 'succeeded', output: { paid: 50 } } },
  ])
  expect(ledger.busy).toBe(false)
})

test.each(['stored', 'not stored'])(
  '[LG1450] a claim that was %s although the store failed is neither lost nor run twice',
  async (how) => {
    const { store, ledger } = openLedger()
    taken(await ledger.request(requestOf()))
    const replaceAll = store.replaceAll.bind(store)
    store.replaceAll = async (transitions) => {
      if (how === 'stored') await replaceAll(transitions)
      throw new Error('the connection was lost')
    }
    const approval = await ledger.get('approval-1')
    if (!approval) throw new Error('No approval.')
    const decide = () => ledger.decideAndClaim(approval, yes, requestOf())
    await expect(decide()).rejects.toThrow('the connection was lost')
    expect(ledger.busy).toBe(true)
    store.replaceAll = replaceAll
    const settled = await ledger.recover()
    expect(settled.map(({ state }) => state.name)).toEqual(how === 'stored' ? ['approved'] : [])
    expect(ledger.busy).toBe(false)
    if (how === 'not stored') taken(await ledger.decide('approval-1', yes))
    taken(await ledger.claim('approval-1', requestOf()))
    expect(await ledger.claim('approval-1', requestOf())).toEqual({ refused: 'not-approved' })
    expect(taken(await ledger.succeed('approval-1', 1)).state.name).toBe('succeeded')
  },
)

describe.each(['stored', 'not stored'])(
  '[LG1450] after a claim that was %s although the store failed',
  (how) => {
    /** Returns a ledger with an approval whose decision was recorded, with its claim, by a store that then failed. */
    async function openFailed() {
      const { store, ledger } = openLedger()
      taken(await ledger.request(requestOf()))
      const replaceAll = store.replaceAll.bind(store)
      store.replaceAll = async (transitions) => {
        if (how === 'stored') await replaceAll(transitions)
        throw new Error('the connection was lost')
      }
      const approval = await ledger.get('approval-1')
      if (!approval) throw new Error('No approval.')
      const decide = () => ledger.decideAndClaim(approval, yes, requestOf())
      await expect(decide()).rejects.toThrow('the connection was lost')
      store.replaceAll = replaceAll
      return { store, ledger, decide }
    }

    test('[LG1450] the next decision claims the call, or is refused because the first one is recorded', async () => {
      const { ledger, decide } = await openFailed()
      const isStored = how === 'stored'
      const expected = isStored
        ? { refused: 'already-decided' }
        : { claimed: { state: { name: 'executing' } } }
      expect(await decide()).toMatchObject(expected)
      if (isStored) taken(await ledger.claim('approval-1', requestOf()))
      expect(taken(await ledger.succeed('approval-1', 1)).state.name).toBe('succeeded')
    })

    test('[LG1450] a claim waits until a sweep has given up the earlier one', async () => {
      const { store, ledger, decide } = await openFailed()
      const gate = defer()
      const get = store.get.bind(store)
      const replace = store.replace.bind(store)
      store.get = async (id) => (await gate.promise, get(id))
      store.replace = async (transition) => (await gate.promise, replace(transition))
      const swept = ledger.recover()
      const claimed = how === 'stored' ? ledger.claim('approval-1', requestOf()) : decide()
      gate.resolve()
      await swept
      expect(isRefusal(await claimed)).toBe(false)
      expect(taken(await ledger.succeed('approval-1', 1)).state.name).toBe('succeeded')
      expect(ledger.busy).toBe(false)
    })
  },
)

test('[LG82] the next recovery settles a call that its worker abandoned', async () => {
  const { ledger } = openLedger()
  taken(await ledger.request(requestOf()))
  taken(await ledger.decide('approval-1', yes))
  taken(await ledger.claim('approval-1', requestOf()))
  ledger.abandon('approval-1')
  expect(await ledger.recover()).toMatchObject([{ state: { name: 'unknown' } }])
  ledger.abandon('approval-1')
  expect([await ledger.recover(), ledger.busy]).toEqual([[], false])
})

test('[LG18] the audit record contains who, when, what was shown, decided and run, and the outcome', async () => {
  const { clock, ledger } = openLedger()
  const { terms, messageId, toolCallId, toolName, args } = requestOf()
  const { digest, deadline } = taken(await ledger.request(requestOf()))
  clock.now += 1
  taken(await ledger.decide('approval-1', { ...yes, reason: '急ぎ', editedArgs: { amount: 40 } }))
  clock.now += 1
  taken(await ledger.claim('approval-1', requestOf()))
  clock.now += 1
  taken(await ledger.succeed('approval-1', { balance: 960 }))
  const shown = { messageId, toolCallId, toolName, args, digest, terms, deadline }
  const events = [
    { type: 'requested', ...shown },
    { type: 'approved', by: 'hanako', step: 0, reason: '急ぎ', editedArgs: { amount: 40 } },
    { type: 'started', worker: 'w-1', args: { amount: 40 } },
    { type: 'succeeded', output: { balance: 960 } },
  ]
  const expected = events.map((event, index) => ({
    seq: index + 1,
    approvalId: 'approval-1',
    chat,
    version: index,
    at: NOON + index,
    event,
  }))
  expect(await collect(ledger.audit())).toEqual(expected)
  expect(await collect(ledger.audit({ chat }))).toEqual(expected)
})

test('[LG20] changing a returned approval does not affect the ledger', async () => {
  for (const editedArgs of [undefined, { amount: 40 }]) {
    const { ledger } = openLedger()
    const shown = requestOf().args
    const asked = taken(await ledger.request(requestOf()))
    Object.assign(asked.args, { amount: 1_000_000 })
    const decision = editedArgs === undefined ? yes : { ...yes, editedArgs }
    const approved = taken(await ledger.decide('approval-1', decision))
    Object.assign(argsToRun(approved), { amount: 1_000_000 })
    const claimed = taken(await ledger.claim('approval-1', requestOf({ args: shown })))
    expect(argsToRun(claimed)).toEqual(editedArgs ?? shown)
  }
})

test('[AP13] a ledger with an outdated approval uses the stored one', async () => {
  const { clock, store, ledger } = openLedger()
  const other = new Ledger({ store, appName: 'demo', worker: 'w-2', leaseMs: 100 })
  taken(await ledger.request(requestOf({ terms: { ...termsOf(), idempotent: true } })))
  taken(await other.decide('approval-1', yes))
  expect(await ledger.decide('approval-1', yes)).toMatchObject({ refused: 'already-decided' })
  taken(await other.claim('approval-1', requestOf()))
  expect(await ledger.claim('approval-1', requestOf())).toMatchObject({
    refused: 'already-decided',
    state: { name: 'executing' },
  })
  clock.now += 100
  await ledger.recover()
  expect(taken(await ledger.claim('approval-1', requestOf())).state.name).toBe('executing')
  expect(await other.succeed('approval-1', 1)).toMatchObject({ refused: 'not-approved' })
  expect(await other.claim('approval-1', requestOf())).toMatchObject({ refused: 'already-decided' })
})

test('[LG19] a repeated request returns the same approval, one with other arguments is refused', async () => {
  const { ledger } = openLedger()
  const first = taken(await ledger.request(requestOf()))
  expect(await ledger.request(requestOf({ id: 'second' }))).toEqual(first)
  expect(await ledger.request(requestOf({ args: { amount: 1 } }))).toEqual({ refused: 'mismatch' })
  expect(await ledger.request(requestOf({ toolCallId: 'other' }))).toEqual({ refused: 'mismatch' })
  expect(await ledger.findByCall(chat, 'call-1')).toEqual(first)
})

test('[LG19] ids are random by default', async () => {
  const { ledger } = openLedger()
  const { id: _id, ...request } = requestOf()
  expect(taken(await ledger.request(request)).id).toMatch(/^[0-9a-f-]{36}$/)
})

test('[AP52] a thousand requests leave as many pending as the quota allows', async () => {
  const { ledger } = openLedger()
  const requests = Array.from({ length: 1_000 }, (_, number) =>
    ledger.request(requestOf({ id: `a-${number}`, toolCallId: `c-${number}` })),
  )
  const refused = (await Promise.all(requests)).filter((result) => 'refused' in result)
  expect(refused).toEqual(Array.from({ length: 984 }, () => ({ refused: 'too-many-pending' })))
  expect(await ledger.pendingOf(chat)).toHaveLength(16)
})

test('[LG31] the audit record in SQLite cannot be changed or truncated', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  await using store = await openSqliteStore({ path })
  const ledger = new Ledger({ store: store.approvals, appName: 'demo' })
  taken(await ledger.request(requestOf()))
  const other = new Database(path)
  expect(() => other.exec('DELETE FROM approval_audit')).toThrow('append-only')
  expect(() => other.exec('UPDATE approval_audit SET version = 7')).toThrow('append-only')
  for (const seq of ['1', '2', 'NULL'])
    expect(() =>
      other.exec(`INSERT OR REPLACE INTO approval_audit (seq, approval_id, version, entry, hash)
        SELECT ${seq}, approval_id, version, '{}', hash FROM approval_audit`),
    ).toThrow('append-only')
  other.close()
  expect(await collect(ledger.audit())).toHaveLength(1)
  expect(await store.approvals.verifyAudit?.()).toMatchObject({ entries: 1, head: { seq: 1 } })
})

test('[LG34] listeners receive every change until they unsubscribe, and cannot disturb it', async () => {
  const errors: unknown[] = []
  const { ledger } = openLedger({ onError: (error) => errors.push(error) })
  const changes: Approval[] = []
  ledger.onChange(() => {
    throw new Error('a listener')
  })
  const leave = ledger.onChange((approval) => changes.push(approval))
  const asked = taken(await ledger.request(requestOf()))
  const approved = taken(await ledger.decide('approval-1', yes))
  expect(await ledger.decide('approval-1', yes)).toMatchObject({ refused: 'already-decided' })
  leave()
  taken(await ledger.cancel('approval-1', 'gone'))
  expect(changes).toEqual([asked, approved])
  expect(errors).toHaveLength(3)
})

test('[LG34] approvals of another application are invisible', async () => {
  const { store, ledger } = openLedger()
  const other = new Ledger({ store, appName: 'other' })
  taken(await ledger.request(requestOf()))
  expect(await other.get('approval-1')).toBeUndefined()
  expect(await other.decide('approval-1', yes)).toEqual({ refused: 'unknown-approval' })
  expect(await other.claim('approval-1', requestOf())).toEqual({ refused: 'unknown-approval' })
  expect(await other.cancel('approval-1', 'x')).toEqual({ refused: 'unknown-approval' })
  expect(await other.list({ limit: 10 })).toEqual([])
  expect(await collect(other.audit())).toEqual([])
})

test('[AP25] a person who may not see an approval does not get it', async () => {
  const { ledger } = openLedger()
  const asked = taken(await ledger.request(requestOf({ terms: termsOf(managerStep) })))
  expect(await ledger.get('approval-1', stranger)).toBeUndefined()
  expect(await ledger.get('approval-1', hanako)).toEqual(asked)
  expect(await ledger.get('approval-1', manager)).toEqual(asked)
  expect(await ledger.get('unknown', manager)).toBeUndefined()
})

test('[LG36] deadlines in SQLite use the clock of the database', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const before = Date.now()
  const now = await store.approvals.now()
  expect(Number.isInteger(now)).toBe(true)
  expect(now).toBeGreaterThanOrEqual(before - 1)
  expect(now).toBeLessThanOrEqual(Date.now() + 1)
})

test('[AP800] a successful call is recorded as succeeded, whatever it returned', async () => {
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  const outputs: [unknown, unknown][] = [
    [undefined, null],
    [{ at: new Date(0), none: undefined }, { at: '1970-01-01T00:00:00.000Z' }],
    [cyclic, { unrecorded: expect.any(String) as unknown }],
    [{ big: 1n }, { unrecorded: expect.any(String) as unknown }],
  ]
  await using store = await openSqliteStore({ path: ':memory:' })
  const ledger = new Ledger({ store: store.approvals, appName: 'demo' })
  for (const [index, [output, recorded]] of outputs.entries()) {
    const request = requestOf({ id: `a-${index}`, toolCallId: `c-${index}` })
    taken(await ledger.request(request))
    taken(await ledger.decide(`a-${index}`, yes))
    taken(await ledger.claim(`a-${index}`, request))
    taken(await ledger.succeed(`a-${index}`, output))
    expect((await ledger.get(`a-${index}`))?.state).toMatchObject({
      name: 'succeeded',
      output: recorded,
    })
  }
})

test('[LG16] arguments that JSON cannot carry are rejected before anything is stored', async () => {
  const { ledger } = openLedger()
  const invalid = expect.objectContaining({ name: 'ApprovalError', code: 'invalid' }) as unknown
  await expect(ledger.request(requestOf({ args: { big: 1n } }))).rejects.toEqual(invalid)
  taken(await ledger.request(requestOf()))
  await expect(ledger.decide('approval-1', { ...yes, editedArgs: { big: 1n } })).rejects.toEqual(
    invalid,
  )
  expect(await collect(ledger.audit())).toHaveLength(1)
})

test('[LG29] a lock that is stored although the store failed is released when the store works again', async () => {
  const { store, ledger } = openLedger()
  const other = new Ledger({ store, appName: 'demo', worker: 'w-2', leaseMs: 100 })
  const lockChat = store.lockChat.bind(store)
  store.lockChat = async (...given) => {
    await lockChat(...given)
    throw new Error('the connection was lost')
  }
  await expect(ledger.locks.lock(chat)).rejects.toThrow('the connection was lost')
  store.lockChat = lockChat
  // The worker is alive.
  await ledger.heartbeat()
  expect(await other.locks.lock(chat)).toBeUndefined()
  await ledger.locks.reconcile()
  expect(await other.locks.lock(chat)).toBeDefined()
})

test('[LG29] a lock whose release the database has lost is released again, and a lock that is held is kept', async () => {
  const { store, ledger } = openLedger()
  const other = new Ledger({ store, appName: 'demo', worker: 'w-2', leaseMs: 100 })
  const another = { ...chat, chatId: 'held' }
  const token = (await ledger.locks.lock(chat)) ?? ''
  const unlockChat = store.unlockChat.bind(store)
  // PostgreSQL loses the newest writes when it crashes, if they were not durable.
  store.unlockChat = async () => undefined
  await ledger.locks.unlock(chat, token)
  store.unlockChat = unlockChat
  const held = await ledger.locks.lock(another)
  await ledger.heartbeat()
  expect(await other.locks.lock(chat)).toBeUndefined()
  expect(await ledger.locks.reconcile()).toEqual([])
  expect(await other.locks.lock(chat)).toBeDefined()
  expect((await other.locks.findHolder(another))?.token).toBe(held)
})

test('[LG29] [AP16] a ledger locks chats as its worker, and cancels the calls of a deleted chat', async () => {
  const { store, ledger } = openLedger()
  const other = new Ledger({ store, appName: 'demo', worker: 'w-2', leaseMs: 100 })
  const token = (await ledger.locks.lock(chat)) ?? ''
  expect([token, await other.locks.lock(chat)]).toEqual([expect.stringMatching(/./), undefined])
  expect([ledger.busy, other.busy]).toEqual([true, false])
  await ledger.locks.unlock(chat, token)
  expect(await other.locks.lock(chat)).not.toBe(token)
  expect([ledger.busy, other.busy]).toEqual([false, true])
  taken(await ledger.request(requestOf()))
  const changes: string[] = []
  ledger.onChange(({ state }) => changes.push(state.name))
  expect(await ledger.deleteChat(chat, 'the chat was deleted')).toHaveLength(1)
  expect(changes).toEqual(['cancelled'])
  expect(await ledger.decide('approval-1', yes)).toEqual({ refused: 'cancelled' })
})

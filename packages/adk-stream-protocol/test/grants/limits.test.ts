import { randomUUID } from 'node:crypto'

import * as fc from 'fast-check'
import { expect, test, vi } from 'vitest'

import { times } from '../../../../test/support/long-run.ts'
import type { AuditRecord } from '../../src/approvals/audit-entry.ts'
import { chat, collect, requestOf, taken } from '../../src/store/contract/fixtures.ts'
import type { Store } from '../../src/store/store.ts'
import { DATABASES, type StoreDatabase } from '../support/store-databases.ts'
import {
  callTool,
  giveGrant,
  givePlan,
  openServer,
  revokeAll,
  termsOf,
  type GrantServer,
} from './support/servers.ts'

async function openServers(
  database: StoreDatabase,
): Promise<readonly [GrantServer, GrantServer, GrantServer]> {
  const open = async (): Promise<GrantServer> => openServer(await database.openStore())
  return [await open(), await open(), await open()]
}

function readAudit({ ledger }: GrantServer): Promise<AuditRecord[]> {
  return collect(ledger.audit())
}

/** Returns the audit entries of the calls that a grant has started. */
function startedBy(records: readonly AuditRecord[], grantId?: string): AuditRecord[] {
  const covered = new Map(
    records.flatMap(({ approvalId, event }) =>
      event.type === 'approved' && event.grant ? [[approvalId, event.grant.id]] : [],
    ),
  )
  return records.filter(({ approvalId, event }) => {
    const used = covered.get(approvalId)
    return event.type === 'started' && used !== undefined && used === (grantId ?? used)
  })
}

test.each(DATABASES)(
  '[GR1625] of 50 calls at once on three servers, with a budget for 7, exactly 7 run, and 43 are asked for, on $name',
  async ({ open }) => {
    await using database = await open()
    const servers = await openServers(database)
    const [first] = servers
    const terms = await termsOf({
      grants: [{ budget: { argument: 'amount', max: 70 }, maxUses: 100 }],
    })
    await giveGrant(first, terms)
    const made = await Promise.all(
      Array.from({ length: 50 }, (_, index) => {
        const id = `call-${index}`
        return callTool(servers[index % 3] ?? first, { id, amount: 10, terms })
      }),
    )
    expect(made.filter((approval) => approval?.state.name === 'executing')).toHaveLength(7)
    expect(startedBy(await readAudit(first))).toHaveLength(7)
    const [grant] = (await first.store.grants?.list(chat)) ?? []
    expect(grant).toMatchObject({ uses: 7, spent: 70, state: 'open' })
    for (const [index, approval] of made.entries()) {
      const id = `call-${index}`
      if (!approval) taken(await first.ledger.request(requestOf({ id, toolCallId: id, terms })))
    }
    expect(await first.ledger.pendingOf(chat)).toHaveLength(43)
    expect(await first.store.approvals.verifyAudit?.()).not.toHaveProperty('fault')
  },
)

test.each(DATABASES)(
  '[GR1626] no call starts after its grant was revoked, while 20 calls are made on three servers, on $name',
  async ({ open }) => {
    await using database = await open()
    const servers = await openServers(database)
    const [first, , third] = servers
    const terms = await termsOf({ grants: [{ free: ['amount'], maxUses: 100 }] })
    await giveGrant(first, terms)
    const calls = Array.from({ length: 20 }, async (_, index) => {
      const made = await callTool(servers[index % 2] ?? first, {
        id: `call-${index}`,
        amount: 1,
        terms,
      })
      if (index === 4) await revokeAll(third)
      return made
    })
    const started = (await Promise.all(calls)).filter((approval) => approval)
    const records = await readAudit(first)
    const revoked = records.find(({ event }) => event.type === 'grant-revoked')?.seq ?? 0
    expect(startedBy(records)).toHaveLength(started.length)
    expect(revoked).toBeGreaterThan(0)
    expect(startedBy(records).every(({ seq }) => seq < revoked)).toBe(true)
    expect(await callTool(first, { id: 'later', amount: 1, terms })).toBe(undefined)
  },
)

test.each(DATABASES)(
  '[GR1626] a call is claimed in the commit that uses the grant, and a call id is used once, on $name',
  async ({ open }) => {
    await using database = await open()
    const [first, second] = await openServers(database)
    const terms = await termsOf({ grants: [{ free: ['amount'] }] })
    await giveGrant(first, terms)
    const call = { id: 'call-1', amount: 1, terms }
    const made = await Promise.all([callTool(first, call), callTool(second, call)])
    expect(made.filter((approval) => approval)).toHaveLength(1)
    expect(await first.store.grants?.list(chat)).toMatchObject([{ uses: 1 }])
    // A grant for the same tool replaces the first one.
    await giveGrant(second, terms, 'given again')
    expect(await first.store.grants?.list(chat)).toMatchObject([
      { approvalId: 'given again', uses: 0 },
    ])
  },
)

type Step =
  | { readonly type: 'call'; readonly server: number; readonly amount: number }
  | { readonly type: 'revoke' | 'give'; readonly server: number }

const server = fc.integer({ min: 0, max: 2 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('call'),
      server,
      amount: fc.integer({ min: -1, max: 40 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('revoke', 'give'), server }) },
)

const SYNCHRONOUS: ReadonlySet<string | symbol> = new Set(['audit', 'startLeaseRenewal'])

/** A store whose calls wait for the scheduler of a test. */
function scheduled<Part extends object>(part: Part, scheduler: fc.Scheduler): Part {
  return new Proxy(part, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      if (SYNCHRONOUS.has(name))
        return (...given: unknown[]): unknown => Reflect.apply(method, target, given)
      return async (...given: unknown[]) => {
        await scheduler.schedule(Promise.resolve(), String(name))
        const result: unknown = Reflect.apply(method, target, given)
        return result
      }
    },
  })
}

test('[GR1625] in no interleaving of calls, new grants and revocations do the calls of a grant exceed its limits', async () => {
  const sqlite = DATABASES.find(({ name }) => name === 'SQLite')
  if (!sqlite) throw new Error('There is no SQLite.')
  await using database = await sqlite.open()
  const opened: Store[] = [
    await database.openStore(),
    await database.openStore(),
    await database.openStore(),
  ]
  const limits = { max: 60, maxUses: 4 }
  const terms = await termsOf({
    grants: [{ budget: { argument: 'amount', max: limits.max }, maxUses: limits.maxUses }],
  })
  let program = 0
  let starts = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 8, maxLength: 24 }),
      fc.scheduler(),
      async (steps, scheduler) => {
        program += 1
        const prefix = `${program}`
        const plain = opened.map((store) => openServer(store))
        const [first] = plain
        if (!first) throw new Error('There is no server.')
        await revokeAll(first)
        const from = await first.ledger.lastSeq()
        await giveGrant(first, terms, `${prefix} given`)
        const servers = opened.map((store) =>
          openServer({
            approvals: scheduled(store.approvals, scheduler),
            ...(store.grants && { grants: scheduled(store.grants, scheduler) }),
          }),
        )
        const done = Promise.all(
          steps.map(async (each, index) => {
            const at = servers[each.server] ?? first
            const id = `${prefix} ${index}`
            if (each.type === 'call') await callTool(at, { id, amount: each.amount, terms })
            else if (each.type === 'give') await giveGrant(at, terms, id)
            else await revokeAll(at).catch(() => undefined)
          }),
        )
        await scheduler.waitFor(done)
        const records = (await readAudit(first)).filter(({ seq }) => seq > from)
        const grants = records.flatMap(({ event }) =>
          event.type === 'approved' && event.gives ? [event.gives.id] : [],
        )
        for (const id of grants) {
          const started = startedBy(records, id)
          const amounts = started.map(({ event }) =>
            event.type === 'started' ? Number(event.args['amount']) : 0,
          )
          starts += started.length
          expect(amounts.every((amount) => amount > 0)).toBe(true)
          expect(amounts.reduce((sum, amount) => sum + amount, 0)).toBeLessThanOrEqual(limits.max)
          expect(started.length).toBeLessThanOrEqual(limits.maxUses)
          const end = records.find(
            ({ event }) => event.type === 'grant-revoked' && event.grantId === id,
          )
          expect(started.every(({ seq }) => seq < (end?.seq ?? Infinity))).toBe(true)
        }
      },
    ),
    { numRuns: times(25, 500) },
  )
  expect(starts).toBeGreaterThan(times(25, 500))
})

test.each(DATABASES)(
  '[GR1624] a grant ends by the clock of the store, also if the clock of the server is set back, on $name',
  async ({ open }) => {
    await using database = await open()
    const [first] = await openServers(database)
    const terms = await termsOf({ grants: [{ free: ['amount'], expiresMs: 1 }] })
    await giveGrant(first, terms)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 })
    try {
      await expect
        .poll(() => callTool(first, { id: randomUUID(), amount: 1, terms }))
        .toBe(undefined)
    } finally {
      vi.useRealTimers()
    }
  },
)

test.each(DATABASES)(
  '[GR1625] [GR1650] of 50 calls at once on three servers that a plan has 7 times, exactly 7 run, on $name',
  async ({ open }) => {
    await using database = await open()
    const servers = await openServers(database)
    const [first] = servers
    const terms = await givePlan(first, await termsOf({ plans: true }), 7)
    const made = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        callTool(servers[index % 3] ?? first, { id: `call-${index}`, amount: 10, terms }),
      ),
    )
    expect(made.filter((approval) => approval?.state.name === 'executing')).toHaveLength(7)
    expect(startedBy(await readAudit(first))).toHaveLength(7)
    expect(await first.store.approvals.verifyAudit?.()).not.toHaveProperty('fault')
  },
)

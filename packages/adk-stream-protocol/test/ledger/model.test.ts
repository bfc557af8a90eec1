import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { times } from '../../../../test/support/long-run.ts'
import type { ApprovalStore } from '../../src/approvals/approval-store.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { queueByKey } from '../../src/store/postgres/postgres-session-service.ts'
import { SqliteApprovalStore } from '../../src/store/sqlite/sqlite-approval-store.ts'
import { NOON } from './support/fixture.ts'
import { emptyTally, openMemory, property } from './support/programs.ts'
import { CLOCK, moveClock, openWithClock } from './support/subjects.ts'
import { DEADLINE_MS } from './support/plan.ts'
import type { Backing, MakeLedger } from './support/simulation.ts'
import { openTestStores } from '../support/postgres-stores.ts'

const RUNS_IN_MEMORY = times(150, 9_000)
const RUNS_ON_SQLITE = times(20, 1_200)
const RUNS_ON_POSTGRES = times(5, 300)

const makeLedger: MakeLedger = (options) => new Ledger(options)

test('[LG1] no interleaving of instances, crashes and time breaks an invariant, in memory', async () => {
  const tally = emptyTally()
  await fc.assert(property(openMemory, makeLedger, { tally }), { numRuns: RUNS_IN_MEMORY })
  // A run in which nothing happens proves nothing.
  expect(tally.starts).toBeGreaterThan(RUNS_IN_MEMORY / 10)
  expect(tally.accepted).toBeGreaterThan(RUNS_IN_MEMORY / 4)
  expect(tally.refused).toBeGreaterThan(RUNS_IN_MEMORY)
  // Some outcomes are rare: a short run may have none of them.
  if (RUNS_IN_MEMORY < 9_000) return
  expect(tally.withdrawn).toBeGreaterThan(20)
  for (const end of ['succeeded', 'failed', 'unknown', 'denied', 'expired', 'cancelled'])
    expect(tally.ends.get(end) ?? 0).toBeGreaterThan(5)
})

test('[LG1] no interleaving of instances, crashes and time breaks an invariant, on three connections to one SQLite file', async () => {
  await using backings = await sqliteBackings()
  const tally = emptyTally()
  await fc.assert(property(backings.open, makeLedger, { tally }), { numRuns: RUNS_ON_SQLITE })
  expect(tally.starts).toBeGreaterThan(RUNS_ON_SQLITE / 40)
})

test('[LG1] no interleaving of instances, crashes and time breaks an invariant, in three stores on one PostgreSQL', async () => {
  await using backings = await postgresBackings()
  const tally = emptyTally()
  await fc.assert(property(backings.open, makeLedger, { tally }), { numRuns: RUNS_ON_POSTGRES })
  expect(tally.accepted).toBeGreaterThan(0)
})

test('[LG1] no interleaving breaks an invariant of questions, answers and sign-ins, in memory', async () => {
  const tally = emptyTally()
  await fc.assert(property(openMemory, makeLedger, { tally, kinds: 'all' }), {
    numRuns: RUNS_IN_MEMORY,
  })
  expect(tally.answered).toBeGreaterThan(RUNS_IN_MEMORY / 10)
  expect(tally.starts).toBeGreaterThan(RUNS_IN_MEMORY / 20)
})

test('[LG1] no interleaving breaks an invariant of questions, answers and sign-ins, on SQLite and PostgreSQL', async () => {
  await using sqlite = await sqliteBackings()
  const tally = emptyTally()
  const checked = { tally, kinds: 'all' } as const
  await fc.assert(property(sqlite.open, makeLedger, checked), { numRuns: RUNS_ON_SQLITE })
  await using postgres = await postgresBackings()
  await fc.assert(property(postgres.open, makeLedger, checked), { numRuns: RUNS_ON_POSTGRES })
  expect(tally.accepted).toBeGreaterThan(0)
})

async function postgresBackings(): Promise<AsyncDisposable & { open: () => Backing }> {
  const database = await openTestStores()
  const opened = [await database.open(), await database.open(), await database.open()]
  // One statement after the other: the scheduler of the test chooses their order, and the history records it.
  const queue = queueByKey()
  const stores = opened.map(({ approvals }) => inOrder(approvals, queue))
  let programs = 0
  let start = NOON
  const setClocks = (at: number, leaseAt: number): void => {
    void queue('', () => database.setClocks(at, leaseAt))
  }
  return {
    open: () => {
      programs += 1
      start += 100 * DEADLINE_MS
      return { stores, appName: `program ${programs}`, start, setClocks }
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** A store whose calls wait for each other. */
function inOrder(store: ApprovalStore, queue: ReturnType<typeof queueByKey>): ApprovalStore {
  return new Proxy(store, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      const call = (...given: unknown[]): unknown => Reflect.apply(method, target, given)
      // The audit record is read when everything is idle.
      if (name === 'audit') return call
      return (...given: unknown[]) => queue('', async () => call(...given))
    },
  })
}

/** Every program gets its own application in one database, later than the previous ones. */
async function sqliteBackings(): Promise<AsyncDisposable & { open: () => Backing }> {
  const folder = await temporaryDirectory()
  const path = folder.file('ledger.db')
  const connections = [
    await openWithClock(path),
    await openWithClock(path),
    await openWithClock(path),
  ]
  // Other tests prove durability. Only the order matters here.
  for (const connection of connections) connection.exec('PRAGMA synchronous = OFF')
  let leaseNow = NOON
  const clocks = { clock: CLOCK, leaseClock: () => leaseNow }
  const stores = connections.map((connection) => new SqliteApprovalStore(connection, clocks))
  let programs = 0
  let start = NOON
  return {
    open: () => {
      programs += 1
      start += 100 * DEADLINE_MS
      const [first] = connections
      const setClocks = (at: number, leaseAt: number): void => {
        if (first) moveClock(first, at)
        leaseNow = leaseAt
      }
      return { stores, appName: `program ${programs}`, start, setClocks }
    },
    [Symbol.asyncDispose]: async () => {
      for (const connection of connections) connection.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { times } from '../../../test/support/long-run.ts'
import { Ledger } from '../src/approvals/ledger.ts'
import { SqliteApprovalStore } from '../src/store/sqlite/sqlite-approval-store.ts'
import { NOON } from './ledger/fixture.ts'
import { emptyTally, openMemory, property } from './ledger/programs.ts'
import { CLOCK, moveClock, openWithClock } from './ledger/subjects.ts'
import { DEADLINE_MS } from './ledger/plan.ts'
import type { Backing, MakeLedger } from './ledger/simulation.ts'

const RUNS_IN_MEMORY = times(600, 9_000)
const RUNS_ON_SQLITE = times(80, 1_200)

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
  expect(tally.starts).toBeGreaterThan(RUNS_ON_SQLITE / 10)
})

/** Every program gets its own application in one database, later than the previous ones. */
async function sqliteBackings(): Promise<AsyncDisposable & { open: () => Backing }> {
  const folder = await mkdtemp(join(tmpdir(), 'ledger-model-'))
  const path = join(folder, 'ledger.db')
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
      await rm(folder, { recursive: true, force: true })
    },
  }
}

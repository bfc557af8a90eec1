import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Ledger } from '../src/approvals/ledger.ts'
import { MemoryApprovalStore } from '../src/approvals/memory-approval-store.ts'
import { SqliteApprovalStore } from '../src/store/sqlite/sqlite-approval-store.ts'
import { NOON } from './ledger/fixture.ts'
import { emptyTally, property } from './ledger/programs.ts'
import { CLOCK, moveClock, openWithClock } from './ledger/subjects.ts'
import type { Backing } from './ledger/world.ts'

const makeLedger = (options: ConstructorParameters<typeof Ledger>[0]) => new Ledger(options)

test('[LG1] in memory', async () => {
  const tally = emptyTally()
  const started = performance.now()
  await fc.assert(property(openMemory, makeLedger, tally), { numRuns: 1000 })
  console.log(performance.now() - started, tally)
  expect(tally.starts).toBeGreaterThan(100)
})

function openMemory(): Backing {
  let now = NOON
  const store = new MemoryApprovalStore(() => now)
  return {
    stores: [store, store, store],
    appName: 'demo',
    start: NOON,
    setClock: (at) => {
      now = at
    },
  }
}

import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { faults } from './ledger/faults.ts'
import { emptyTally, openMemory, property } from './ledger/programs.ts'

test.each(Object.entries(faults))(
  '[LG2] the checker finds %s',
  async (_, { make, found }) => {
    // The programs are always the same: whether a fault is found must not depend on luck.
    const settings = { numRuns: 5_000, seed: 42, endOnFailure: true }
    const { errorInstance } = await fc.check(property(openMemory, make, emptyTally()), settings)
    expect(String(errorInstance)).toMatch(found)
  },
  60_000,
)

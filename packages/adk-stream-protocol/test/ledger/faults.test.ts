import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { faults } from './support/faults.ts'
import { openMemory, property } from './support/programs.ts'

test.each(Object.entries(faults))(
  '[LG2] the checker finds %s',
  async (_, { make, breaks, seed = 42 }) => {
    // The programs are fixed, so that a fault is found every time.
    const settings = { numRuns: 5_000, seed, endOnFailure: true }
    const { failed, errorInstance } = await fc.check(
      property(openMemory, make, { counting: breaks }),
      settings,
    )
    expect([failed, String(errorInstance)]).toEqual([true, expect.stringMatching(breaks)])
  },
)

import { test } from 'vitest'

import { isLong } from './long-run.ts'

/** Declares a test, or one for each case, in one of several groups. */
interface Turns {
  (name: string, body: () => Promise<void>): void
  readonly each: typeof test.each
}

/**
 * Returns the `test` of one of several groups that declare the same tests. In `npm run test:long` each group runs all of them. In
 * `npm test` the groups take turns: each test, and each case of a table, runs in one group. A test that not every group declares
 * uses the `test` of vitest.
 */
export function takeTurns({ group, groups }: { group: number; groups: number }): Turns {
  let declared = 0
  const isTurn = (): boolean => {
    declared += 1
    return isLong || declared % groups === group % groups
  }
  const one = (name: string, body: () => Promise<void>): void => {
    // oxlint-disable-next-line vitest/no-conditional-tests, vitest/expect-expect, vitest/valid-title -- A test of another file.
    if (isTurn()) test(name, body)
  }
  const each = (cases: readonly unknown[]) => test.each(cases.filter(isTurn))
  // The types of a table and of its test are those of vitest.
  return Object.assign(one, { each: each as typeof test.each })
}

import { expect, test } from 'vitest'

import { isCompletable } from '../../src/approvals/deciders.ts'

const step = (count: number, principals: string[], roles: string[] = []) => ({
  count,
  principals,
  roles,
})

test.each([
  ['one of one', [step(1, ['ann'])], true],
  ['two of one', [step(2, ['ann'])], false],
  ['two of the same', [step(2, ['ann', 'ann'])], false],
  ['two of a role', [step(2, [], ['lead'])], true],
  ['two, one of them by role', [step(2, ['ann'], ['lead'])], true],
  ['nobody', [step(1, [])], false],
  ['one person in two steps', [step(1, ['ann']), step(1, ['ann'])], false],
  ['two people in two steps', [step(1, ['ann', 'ben']), step(1, ['ann'])], true],
  [
    'two people in three steps',
    [step(1, ['ann', 'ben']), step(1, ['ann']), step(1, ['ben'])],
    false,
  ],
  ['a role beside a person', [step(1, ['ann']), step(2, ['ann'], ['lead'])], true],
])('[AP1044] whether different people can complete a chain: %s', (_name, chain, expected) => {
  expect(isCompletable(chain)).toBe(expected)
})

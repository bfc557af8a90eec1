import assert from 'node:assert/strict'

import { StoreError, type StoreErrorCode } from '../store-error.ts'

/** Assertions in the style of test runners, over `node:assert`, so that the contract runs with any of them. */
export function expect(actual: unknown) {
  return {
    toBe: (expected: unknown) => assert.ok(Object.is(actual, expected), describe(actual, expected)),
    toEqual: (expected: unknown) => assert.deepEqual(toPlain(actual), toPlain(expected)),
    toBeUndefined: () => assert.equal(actual, undefined),
    toHaveLength: (length: number) => assert.equal((actual as { length: number }).length, length),
    toMatch: (pattern: RegExp) => assert.match(String(actual), pattern),
    toMatchObject: (expected: object) => {
      const whole: Record<string, unknown> = { ...(actual as object) }
      const picked = Object.keys(expected).map((name) => [name, whole[name]])
      assert.deepEqual(toPlain(Object.fromEntries(picked)), toPlain(expected))
    },
    toThrow: (type: new (message?: string) => Error) =>
      assert.throws(actual as () => unknown, type),
    not: {
      toBe: (expected: unknown) => assert.notEqual(actual, expected),
      toEqual: (expected: unknown) => assert.notDeepEqual(toPlain(actual), toPlain(expected)),
    },
    rejects: {
      toThrow: (text: string) => assert.rejects(actual as Promise<unknown>, new RegExp(text)),
    },
  }
}

/** Expects a rejection with a `StoreError` of this code. */
export async function expectRefusal(work: Promise<unknown>, code: StoreErrorCode): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof StoreError, `not a StoreError: ${String(error)}`)
    assert.equal(error.code, code)
    return true
  })
}

function describe(actual: unknown, expected: unknown): string {
  return `${String(actual)} is not ${String(expected)}`
}

/** Copies own enumerable properties without those that are undefined. Symbols, classes and prototypes do not count. */
function toPlain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Uint8Array) return [...value]
  if (value instanceof Set || value instanceof Map) return [...value].map(toPlain)
  if (Array.isArray(value)) return value.map(toPlain)
  const copy: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const [name, item] of Object.entries(value)) {
    if (item !== undefined) copy[name] = toPlain(item)
  }
  return copy
}

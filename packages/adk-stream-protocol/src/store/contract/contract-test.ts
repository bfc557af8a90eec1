import assert from 'node:assert/strict'

import type { BaseSessionService } from '@google/adk'

import type { ApprovalStore } from '../../approvals/approval-store.ts'
import type { Store } from '../store.ts'
import { StoreError, type StoreErrorCode } from '../store-error.ts'
import { NOON } from './fixtures.ts'

/** Defines one test. `test` of vitest, of jest and of `node:test` fits. */
export type ContractTest = (name: string, run: () => Promise<void>) => unknown

/** An empty database for one test. Disposing of it closes its stores and removes it. */
export interface ContractDatabase extends AsyncDisposable {
  /** Opens a store on the database, as another process does. */
  open(): Promise<Store>
  /**
   * Sets the clocks of the database, the one for deadlines and the one for leases, in ms. All open stores use them. They
   * only move when a test sets them, and start at {@link CONTRACT_START}.
   */
  setClocks(at: number): void | Promise<void>
}

/** Options of {@link storeContract}. */
export interface StoreContractOptions {
  /** Defines a test: `test` of vitest, jest or `node:test`. */
  readonly test: ContractTest
  /** Creates an empty database. */
  readonly open: () => Promise<ContractDatabase>
}

/** The time at which the clocks of a {@link ContractDatabase} start, in ms since 1970. */
export const CONTRACT_START = NOON

/** An approval store on an empty database, whose clocks only move when a test moves them. */
export interface ApprovalSubject extends AsyncDisposable {
  readonly store: ApprovalStore
  /** Sets the clock for deadlines and the one for leases. */
  setClock(at: number): void | Promise<void>
  /** Closes all connections, and returns the store as a new process opens it. */
  restart(): Promise<ApprovalStore>
}

/** A session service on an empty database. */
export interface SessionSubject extends AsyncDisposable {
  readonly service: BaseSessionService
}

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

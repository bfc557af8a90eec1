import { randomUUID } from 'node:crypto'

import { openWithClocks } from '../../src/store/postgres/postgres-store.ts'
import { NOON } from '../ledger/fixture.ts'
import { createDatabase, type TestDatabase } from './postgres.ts'

export type TestPostgresStore = Awaited<ReturnType<typeof openWithClocks>>

/** Stores on one schema of a PostgreSQL database, with clocks that only move when a test moves them. */
export interface TestStores extends AsyncDisposable {
  readonly url: string
  readonly schema: string
  run(sql: string): Promise<Record<string, unknown>[]>
  open(): Promise<TestPostgresStore>
  setClocks(at: number, leaseAt?: number): Promise<void>
}

/** One database per worker. Creating one takes longer than creating a schema. */
let shared: Promise<TestDatabase> | undefined

/** Creates an empty schema with clocks that stand at noon. */
export async function openTestStores(): Promise<TestStores> {
  shared ??= createDatabase()
  const { url, run } = await shared
  const schema = `s_${randomUUID().replaceAll('-', '')}`
  await run(
    `CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.test_clocks AS SELECT ${NOON}::float8 AS at, ${NOON}::float8 AS lease_at`,
  )
  const clocks = {
    clock: `(SELECT at FROM ${schema}.test_clocks)`,
    leaseClock: `(SELECT lease_at FROM ${schema}.test_clocks)`,
  }
  const opened: TestPostgresStore[] = []
  const options = { connectionString: url, schema, maxConnections: 4, reservedConnections: 2 }
  return {
    url,
    schema,
    run,
    open: async () => {
      const store = await openWithClocks(options, clocks)
      opened.push(store)
      return store
    },
    setClocks: async (at, leaseAt = at) => {
      await run(`UPDATE ${schema}.test_clocks SET at = ${at}, lease_at = ${leaseAt}`)
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(opened.map((store) => store.close()))
      await run(`DROP SCHEMA ${schema} CASCADE`)
    },
  }
}

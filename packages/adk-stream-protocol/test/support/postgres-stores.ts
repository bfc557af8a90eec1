import { randomUUID } from 'node:crypto'

import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { openWithClocks } from '../../src/store/postgres/postgres-store.ts'
import { NOON } from '../ledger/support/fixture.ts'
import { postgresLeaseTimes } from './lease-times.ts'
import { createDatabase, type TestDatabase } from './postgres.ts'

type TestPostgresStore = Awaited<ReturnType<typeof openWithClocks>>

/** Stores on one schema of a PostgreSQL database, with clocks that only move when a test moves them. */
export interface TestStores extends AsyncDisposable {
  readonly url: string
  readonly schema: string
  run(sql: string): Promise<Record<string, unknown>[]>
  open(): Promise<TestPostgresStore>
  setClocks(at: number, leaseAt?: number): Promise<void>
}

/** A database of its own, with the clock of the database, and a function that opens the store of a server on it. */
export async function openStoreDatabase() {
  const database = await createDatabase()
  return {
    openStore: () =>
      openPostgresStore({
        connectionString: database.url,
        schema: 'public',
        maxConnections: 4,
        busyTimeoutMs: 60_000,
      }),
    leases: postgresLeaseTimes(database),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** One database per worker. Creating one takes longer than creating a schema. */
let shared: Promise<TestDatabase> | undefined

/** Schemas that earlier tests have used. Emptying one is faster than creating one. */
const free: string[] = []

/** Returns an empty schema with clocks that stand at noon. */
export async function openTestStores(): Promise<TestStores> {
  shared ??= createDatabase()
  const database = await shared
  const { url } = database
  const run: TestDatabase['run'] = (...given) => database.run(...given)
  const schema = free.pop() ?? (await createSchema(run))
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
      await emptySchema(run, schema)
      free.push(schema)
    },
  }
}

async function createSchema(run: TestDatabase['run']): Promise<string> {
  const schema = `s_${randomUUID().replaceAll('-', '')}`
  await run(
    `CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.test_clocks AS SELECT ${NOON}::float8 AS at, ${NOON}::float8 AS lease_at`,
  )
  return schema
}

async function emptySchema(run: TestDatabase['run'], schema: string): Promise<void> {
  const rows = await run('SELECT tablename FROM pg_tables WHERE schemaname = $1', [schema])
  const tables = rows
    .map((row) => String(row['tablename']))
    .filter(
      (table) => !['schema_version', 'audit_head', 'lease_clock', 'test_clocks'].includes(table),
    )
  // Without triggers, so that the audit record can be emptied too.
  await run(`
    BEGIN; SET LOCAL session_replication_role = replica;
    ${tables.map((table) => `DELETE FROM ${schema}.${table};`).join(' ')}
    UPDATE ${schema}.audit_head SET seq = 0, hash = '';
    UPDATE ${schema}.test_clocks SET at = ${NOON}, lease_at = ${NOON};
    COMMIT`)
}

import { randomUUID } from 'node:crypto'
import { createConnection } from 'node:net'
import { text } from 'node:stream/consumers'

import { Client, Pool } from 'pg'

/** An empty database for one test or one test file. */
export interface TestDatabase extends AsyncDisposable {
  readonly url: string
  /** Runs SQL as a superuser. */
  run(sql: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
}

/** Returns the URL of the PostgreSQL server of this test run. The first call starts it. */
async function postgresUrl(): Promise<string> {
  const port = process.env['TEST_POSTGRES_BROKER']
  if (port === undefined) throw new Error('The test run has no PostgreSQL server.')
  const answer = JSON.parse(await text(createConnection(Number(port), '127.0.0.1'))) as {
    url?: string
    error?: string
  }
  if (answer.url === undefined) throw new Error(answer.error ?? 'PostgreSQL did not start.')
  return answer.url
}

/** Creates an empty database and drops it when the test ends, whatever is still connected. */
export async function createDatabase(): Promise<TestDatabase> {
  const server = await postgresUrl()
  const name = `test_${randomUUID().replaceAll('-', '')}`
  // A copy of the files takes half of the time of a copy by the write-ahead log.
  await runOnce(server, `CREATE DATABASE ${name} TEMPLATE template0 STRATEGY FILE_COPY`)
  const url = new URL(server)
  url.pathname = `/${name}`
  const pool = new Pool({ connectionString: url.href, max: 1, allowExitOnIdle: true })
  pool.on('error', () => undefined)
  return {
    url: url.href,
    run: async (sql, values = []) =>
      (await pool.query<Record<string, unknown>>(sql, [...values])).rows,
    [Symbol.asyncDispose]: async () => {
      await pool.end()
      await runOnce(server, `DROP DATABASE ${name} WITH (FORCE)`)
    },
  }
}

async function runOnce(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

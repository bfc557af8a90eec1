import { existsSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { FunctionTool, LlmAgent, setLogger } from '@google/adk'
import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore, type Store } from 'adk-stream-protocol/store'
import { openPostgresStore } from 'adk-stream-protocol/store/postgres'
import Database from 'libsql'
import { Client } from 'pg'

import { startPostgres } from '../test/support/postgres-server.ts'
import { PayingModel } from './paying-model.ts'

/** The number of turns and the database, from the command line. Each turn has its own chat and requests an approval, which is denied. */
const TURNS = Number(process.argv[2] ?? 100_000)
const NAMED = process.argv[3]
const STEPS = 10
const AT_ONCE = 16
/** Older data is removed. A few seconds represent a year. */
const KEEP_MS = 2_000
const TABLES = ['sessions', 'events', 'chats', 'approvals', 'approval_audit', 'chat_locks'] as const

interface Subject {
  readonly name: string
  readonly store: Store
  readonly readSize: () => Promise<{ readonly bytes: number; readonly rows: readonly number[] }>
  readonly close: () => Promise<void>
}

setLogger(null)
const subjects = { sqlite: openSqlite, postgres: openPostgres }
for (const [name, open] of Object.entries(subjects))
  if (NAMED === undefined || NAMED === name) await measure(await open())
process.exit(0)

async function measure({ name, store, readSize, close }: Subject): Promise<void> {
  const pay = new FunctionTool({
    name: 'pay',
    description: 'Pays.',
    requireConfirmation: true,
    execute: () => ({ paid: true }),
  })
  const bridge = createBridge({
    agent: new LlmAgent({ name: 'assistant', model: new PayingModel(), tools: [pay] }),
    store,
    // The limits per principal would reject some of the turns.
    authenticate: ({ headers }) => ({ id: headers.get('x-person') ?? 'unknown' }),
    retention: { chatsMs: KEEP_MS, auditMs: KEEP_MS, intervalMs: 500 },
  })
  const request = async (turn: number, path: string, body?: unknown): Promise<string> => {
    const headers = { 'content-type': 'application/json', 'x-person': `person-${turn}` }
    const init =
      body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) }
    const response = await bridge.fetch(new Request(`http://localhost${path}`, init))
    if (!response.ok) throw new Error(`${path} responded with ${response.status}.`)
    return response.text()
  }
  const runTurn = async (turn: number): Promise<void> => {
    const messages = [{ role: 'user', content: 'pay' }]
    const asked = await request(turn, '/stream', { id: 'chat', messages })
    const approvalId = /"approvalId":"([^"]+)"/.exec(asked)?.[1]
    await request(turn, `/approvals/${approvalId}`, { approved: false })
    // Reads the rest of the turn.
    await request(turn, '/stream/chat/stream')
  }
  print(`${name}: bytes and rows after so many turns`)
  print(`| turns | MB | ${TABLES.join(' | ')} |`)
  const sizes: number[] = []
  let next = 0
  for (let step = 1; step <= STEPS; step += 1) {
    const end = Math.round((TURNS * step) / STEPS)
    const work = Array.from({ length: AT_ONCE }, async () => {
      while (next < end) await runTurn((next += 1))
    })
    await Promise.all(work)
    const { bytes, rows } = await readSize()
    sizes.push(bytes)
    print(`| ${end} | ${(bytes / 1e6).toFixed(1)} | ${rows.join(' | ')} |`)
  }
  const [, early = 0] = sizes
  print(
    `size at the end / after a fifth: ${((sizes.at(-1) ?? 0) / early).toFixed(2)} (goal: ≤ 1.5)`,
  )
  await bridge.close({ drainMs: 0 })
  await close()
}

async function openSqlite(): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'growth-'))
  const path = join(folder, 'chats.db')
  const store = await openSqliteStore({ path })
  const reader = new Database(path, { readonly: true })
  const count = (table: string): number => {
    const [row] = reader.prepare(`SELECT count(*) AS n FROM ${table}`).all() as { n: number }[]
    return row?.n ?? 0
  }
  return {
    name: 'SQLite',
    store,
    readSize: async () => ({
      bytes: [path, `${path}-wal`].reduce(
        (sum, file) => sum + (existsSync(file) ? statSync(file).size : 0),
        0,
      ),
      rows: TABLES.map(count),
    }),
    close: async () => {
      reader.close()
      await store.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function openPostgres(): Promise<Subject> {
  // By default, autovacuum runs once a minute, which is a tenth of this run.
  const postgres = await startPostgres(['autovacuum=on', 'autovacuum_naptime=1s'])
  const store = await openPostgresStore({ connectionString: postgres.url })
  const client = new Client({ connectionString: postgres.url })
  await client.connect()
  const readNumber = async (sql: string): Promise<number> =>
    Number((await client.query<{ n: string }>(sql)).rows[0]?.n)
  return {
    name: 'PostgreSQL',
    store,
    readSize: async () => {
      const rows: number[] = []
      for (const table of TABLES)
        rows.push(await readNumber(`SELECT count(*) AS n FROM adk_stream_protocol.${table}`))
      return { bytes: await readNumber('SELECT pg_database_size(current_database()) AS n'), rows }
    },
    close: async () => {
      await client.end()
      await store.close()
      await postgres.stop()
    },
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

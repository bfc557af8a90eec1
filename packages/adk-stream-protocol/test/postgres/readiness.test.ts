import { connect, createServer, type Socket } from 'node:net'
import { Pool } from 'pg'
import { expect, test } from 'vitest'

import { portOf } from '../../../../test/support/listen.ts'
import { startPostgres } from '../../../../test/support/postgres-server.ts'
import type { LogEntry } from '../../src/server/operations/operations.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { createDatabase } from '../support/postgres.ts'
import { TestMetrics } from '../support/metrics.ts'
import { serve } from '../support/serve.ts'

const POLLING = { timeout: 120_000, interval: 20 }

async function probe(url: string) {
  const response = await fetch(`${url}/ready`)
  const body: unknown = await response.json()
  return { status: response.status, body }
}

const READY = { status: 200, body: { status: 'ready' } }
const NOT_READY = { status: 503, body: { status: 'not-ready', check: 'store' } }

test('[HO300] a bridge whose PostgreSQL is stopped is not ready, and reports the check', async () => {
  const postgres = await startPostgres()
  const store = await openPostgresStore({ connectionString: postgres.url, busyTimeoutMs: 2_000 })
  await using server = await serve({ store })
  try {
    expect(await probe(server.url)).toEqual(READY)
  } finally {
    await postgres.stop()
  }
  const refused = await probe(server.url)
  expect(refused).toMatchObject({ ...NOT_READY, body: { error: { code: 'unavailable' } } })
  expect(JSON.stringify(refused)).not.toContain(String(postgres.port))
  await store.close()
})

test('[HO300] turns that use all connections do not delay the check; metrics show who waits', async () => {
  await using metrics = new TestMetrics()
  await using database = await createDatabase()
  const pool = new Pool({ connectionString: database.url, max: 1 })
  await using store = await openPostgresStore({ pool })
  await using server = await serve({ store })
  const held = await pool.connect()
  const waiting = pool.query('SELECT 1')
  expect(await probe(server.url)).toEqual(READY)
  const { '': count = 0 } = await metrics.read('db.waiting')
  expect(count).toBeGreaterThanOrEqual(1)
  const { used = 0 } = await metrics.read('db.connections')
  expect(used).toBeGreaterThanOrEqual(1)
  held.release()
  await waiting
  await server.bridge.close()
  await pool.end()
})

test('[OB341] metrics show how long turns wait until other servers can read them, and how long work waits for a connection', async () => {
  await using metrics = new TestMetrics()
  await using database = await createDatabase()
  await using store = await openPostgresStore({ connectionString: database.url })
  await using server = await serve({ store })
  expect(await metrics.read('relay.lag')).toEqual({})
  expect(await (await server.browser().say('[[say Hello.]]')).text()).toContain('[DONE]')
  await expect.poll(async () => (await metrics.read('relay.lag'))[''], POLLING).toBeGreaterThan(0)
  const { '': waited = 0 } = await metrics.read('db.wait_time')
  expect(waited).toBeGreaterThan(0)
  // In seconds.
  expect(waited).toBeLessThan(600)
  await server.bridge.close()
})

/** A proxy to the database that a test can close and open again. */
async function openGate(url: string) {
  const target = new URL(url)
  const { hostname, port } = target
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => [client, upstream].forEach((one) => one.destroy()))
    }
    client.pipe(upstream).pipe(client)
  })
  const open = (at: number) =>
    new Promise<void>((resolve) => {
      server.listen(at, '127.0.0.1', resolve)
    })
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  await open(0)
  const own = portOf(server)
  target.port = String(own)
  return { url: target.href, close, reopen: () => open(own), [Symbol.asyncDispose]: close }
}

test('[OB307] the log reports once when the store cannot be used, and once when it can be used again', async () => {
  await using database = await createDatabase()
  await using gate = await openGate(database.url)
  await using store = await openPostgresStore({ connectionString: gate.url, busyTimeoutMs: 2_000 })
  const entries: LogEntry[] = []
  await using server = await serve({
    store,
    limits: { sweepMs: 20 },
    log: (entry) => entries.push(entry),
  })
  const events = () => entries.map(({ event, code }) => [event, code])
  expect(await probe(server.url)).toEqual(READY)
  await gate.close()
  const lost = [
    ['bridge.started', undefined],
    ['store.unavailable', 'unavailable'],
  ]
  await expect.poll(events, POLLING).toEqual(lost)
  expect(await probe(server.url)).toMatchObject(NOT_READY)
  await gate.reopen()
  await expect.poll(events, POLLING).toEqual([...lost, ['store.available', undefined]])
  await expect.poll(() => probe(server.url), POLLING).toEqual(READY)
  await server.bridge.close()
})

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createEvent, LlmAgent, setLogger } from '@google/adk'
import { type Bridge, createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore, type Store } from 'adk-stream-protocol/store'
import { openPostgresStore } from 'adk-stream-protocol/store/postgres'
import { Client, Pool } from 'pg'

import { startPostgres } from '../test/support/postgres-server.ts'
import { createPayTool, PayingModel } from './paying-model.ts'
import { scriptedAgent } from './scripted-model.ts'
import { median } from './statistics.ts'

/** The number of measurements of each pair, from the command line. */
const ROUNDS = Number(process.argv[2] ?? 200)
const WARM_UP = Math.ceil(ROUNDS / 5)

const DECIDE = `
  WITH moved AS (
    UPDATE floor_approvals SET state = 'executing' WHERE id = $1 AND state = 'requested' RETURNING id)
  SELECT pg_notify('floor_decided', id) FROM moved`

let started: (at: number) => void = () => undefined

setLogger(null)
const folder = await mkdtemp(join(tmpdir(), 'postgres-bench-'))
// As in production, every commit waits for the disk.
const postgres = await startPostgres(['fsync=on', 'full_page_writes=on', 'autovacuum=on'])
const closing: (() => Promise<unknown>)[] = []
try {
  await compare('decision at another instance → start of the tool', {
    goal: 2,
    floor: ['POST, compare-and-set with NOTIFY by hand', await openFloor()],
    us: ['the bridge', await openDecisions()],
  })
  await compare('append of an event to a session', {
    goal: 2,
    floor: ['one INSERT by hand', await openInserts()],
    us: ['appendEvent', await openAppends()],
  })
  await compare('first chunk of a new chat', {
    floor: ['SQLite', openTurns(await openSqlite())],
    us: ['PostgreSQL', openTurns(await openPostgres())],
  })
} finally {
  for (const close of closing.toReversed()) await close()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}
process.exit(0)

interface Pair {
  /** The maximum ratio. */
  readonly goal?: number
  readonly floor: readonly [name: string, measure: () => Promise<number>]
  readonly us: readonly [name: string, measure: () => Promise<number>]
}

/** Measures both alternately, so that the load of the machine affects both. */
async function compare(title: string, { goal, floor, us }: Pair): Promise<void> {
  const samples = { floor: [] as number[], us: [] as number[] }
  for (let round = -WARM_UP; round < ROUNDS; round += 1) {
    const pair = [await floor[1](), await us[1]()] as const
    if (round < 0) continue
    samples.floor.push(pair[0])
    samples.us.push(pair[1])
  }
  const [bare, ours] = [median(samples.floor), median(samples.us)]
  const wanted = goal === undefined ? '' : ` (goal: ≤ ${goal})`
  print(`${title}, median of ${ROUNDS}`)
  print(`  ${floor[0]}: ${bare.toFixed(2)} ms; ${us[0]}: ${ours.toFixed(2)} ms`)
  print(`  ratio: ${(ours / bare).toFixed(2)}${wanted}`)
}

/** One instance requests the approval, and the other one decides it. */
async function openDecisions(): Promise<() => Promise<number>> {
  const [one, other] = [await openInstance(), await openInstance()]
  let chat = 0
  return async () => {
    chat += 1
    const messages = [{ role: 'user', content: 'pay' }]
    const asked = await post(`${one}/stream`, { id: `decided-${chat}`, messages })
    const approvalId = /"approvalId":"([^"]+)"/.exec(asked)?.[1]
    const start = new Promise<number>((resolve) => {
      started = resolve
    })
    const from = performance.now()
    const decided = post(`${other}/approvals/${approvalId}`, { approved: true })
    const took = (await start) - from
    await decided
    return took
  }
}

/** Serves an agent whose tool needs approval. Returns the URL. */
async function openInstance(): Promise<string> {
  const pay = createPayTool(() => started(performance.now()))
  const agent = new LlmAgent({ name: 'assistant', model: new PayingModel(), tools: [pay] })
  return listen(openBridge(agent, await openPostgres()))
}

/** The minimum cost of a decision: a request, one durable commit, and a notification to the process that runs the tool. */
async function openFloor(): Promise<() => Promise<number>> {
  const pool = new Pool({ connectionString: postgres.url })
  const owner = new Client({ connectionString: postgres.url })
  await owner.connect()
  await owner.query(
    'CREATE TABLE floor_approvals (id text PRIMARY KEY, state text); LISTEN floor_decided',
  )
  const bare = createServer((request, response) => {
    request.setEncoding('utf8').once('data', (body: string) => {
      // The body is small enough to arrive in one piece.
      const { id } = JSON.parse(body) as { id: string }
      void pool.query(DECIDE, [id]).then(() => response.end('{}'))
    })
  })
  bare.listen(0, '127.0.0.1')
  await once(bare, 'listening')
  closing.push(async () => {
    bare.close()
    await owner.end()
    await pool.end()
  })
  const url = `http://127.0.0.1:${(bare.address() as AddressInfo).port}`
  let round = 0
  return async () => {
    const id = `approval-${(round += 1)}`
    await pool.query('INSERT INTO floor_approvals VALUES ($1, $2)', [id, 'requested'])
    const notified = once(owner, 'notification')
    const from = performance.now()
    const response = post(url, { id })
    await notified
    const took = performance.now() - from
    await response
    return took
  }
}

async function openInserts(): Promise<() => Promise<number>> {
  const pool = new Pool({ connectionString: postgres.url })
  await pool.query('CREATE TABLE floor_events (id bigint PRIMARY KEY, data text)')
  closing.push(() => pool.end())
  let round = 0
  return async () => {
    const data = JSON.stringify(newEvent())
    const from = performance.now()
    await pool.query('INSERT INTO floor_events VALUES ($1, $2)', [(round += 1), data])
    return performance.now() - from
  }
}

async function openAppends(): Promise<() => Promise<number>> {
  const { sessions } = await openPostgres()
  const session = await sessions.createSession({ appName: 'bench', userId: 'person' })
  return async () => {
    const event = newEvent()
    const from = performance.now()
    await sessions.appendEvent({ session, event })
    return performance.now() - from
  }
}

function newEvent() {
  const content = { role: 'model', parts: [{ text: 'lorem ipsum dolor sit amet, '.repeat(20) }] }
  return createEvent({ author: 'assistant', content })
}

/** The time from the request to the first text, each in a new chat. */
function openTurns(store: Store): () => Promise<number> {
  const bridge = openBridge(scriptedAgent(), store)
  const content = JSON.stringify({ tokens: 5, length: 20, ending: 'end' })
  const headers = { 'content-type': 'application/json' }
  let chat = 0
  return async () => {
    const id = `first-${(chat += 1)}`
    const body = JSON.stringify({ id, messages: [{ role: 'user', content }] })
    const from = performance.now()
    const request = new Request('http://localhost/stream', { method: 'POST', headers, body })
    const response = await bridge.fetch(request)
    let took: number | undefined
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? [])
      if (decoder.decode(bytes).includes('"text-delta"')) took ??= performance.now() - from
    return took ?? Number.NaN
  }
}

function openBridge(agent: LlmAgent, store: Store): Bridge {
  const bridge = createBridge({
    agent,
    store,
    authenticate: () => ({ id: 'person' }),
    limits: { maxTurnsPerPrincipal: 1_000 },
  })
  closing.push(() => bridge.close({ drainMs: 0 }))
  return bridge
}

async function openPostgres(): Promise<Store> {
  const store = await openPostgresStore({ connectionString: postgres.url })
  closing.push(() => store.close())
  return store
}

async function openSqlite(): Promise<Store> {
  const store = await openSqliteStore({ path: join(folder, 'chats.db') })
  closing.push(() => store.close())
  return store
}

async function listen(bridge: Bridge): Promise<string> {
  const server = createServer((request, response) => void bridge.node(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(async () => {
    server.close()
    server.closeAllConnections()
  })
  // A server that listens on a port has such an address.
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function post(url: string, body: unknown): Promise<string> {
  const headers = { 'content-type': 'application/json' }
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).text()
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { LlmAgent, LogLevel, setLogLevel } from '@google/adk'
import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import Database from 'libsql'

import { createPayTool, PayingModel } from './paying-model.ts'

const ROUNDS = 200
const WARM_UP = 30

setLogLevel(LogLevel.ERROR)
const folder = await mkdtemp(join(tmpdir(), 'approval-bench-'))
let started: (at: number) => void = () => undefined

/** The whole bridge: from the request that approves to the first line of the tool. */
async function openBridge(): Promise<() => Promise<number>> {
  const pay = createPayTool(() => started(performance.now()))
  const model = new PayingModel()
  const agent = new LlmAgent({ name: 'assistant', model, tools: [pay] })
  const store = await openSqliteStore({ path: join(folder, 'bridge.db') })
  const bridge = createBridge({ agent, store, authenticate: () => ({ id: 'person' }) })
  const url = await listen(createServer((request, response) => void bridge.node(request, response)))
  let chat = 0
  return async () => {
    chat += 1
    const messages = [{ role: 'user', content: 'pay' }]
    const asked = await post(`${url}/stream`, { id: `chat-${chat}`, messages })
    const approvalId = /"approvalId":"([^"]+)"/.exec(asked)?.[1]
    return timed(() => post(`${url}/approvals/${approvalId}`, { approved: true }))
  }
}

/** The floor: a bare POST, and by hand the two durable commits without which a decision could be lost or run twice. */
async function openFloor(): Promise<() => Promise<number>> {
  const database = new Database(join(folder, 'floor.db'))
  database.exec(
    'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE approvals (id TEXT PRIMARY KEY, state TEXT)',
  )
  const insert = database.prepare('INSERT INTO approvals VALUES (?, ?)')
  const move = database.prepare('UPDATE approvals SET state = ? WHERE id = ? AND state = ?')
  const url = await listen(
    createServer((request, response) => {
      request.setEncoding('utf8').once('data', (body: string) => {
        // The body is ours, and small enough to come in one piece.
        const { id } = JSON.parse(body) as { id: string }
        move.run('approved', id, 'requested')
        move.run('executing', id, 'approved')
        started(performance.now())
        response.end('{}')
      })
    }),
  )
  let round = 0
  return async () => {
    const id = `approval-${(round += 1)}`
    insert.run(id, 'requested')
    return timed(() => post(url, { id }))
  }
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const start = new Promise<number>((resolve) => {
    started = resolve
  })
  const from = performance.now()
  const answered = act()
  const took = (await start) - from
  await answered
  return took
}

async function post(url: string, body: unknown): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return response.text()
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A server that listens on a port has such an address.
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

const [bridge, floor] = [await openBridge(), await openFloor()]
const figures: { us: number[]; floor: number[] } = { us: [], floor: [] }
for (let round = -WARM_UP; round < ROUNDS; round += 1) {
  const us = await bridge()
  const bare = await floor()
  if (round >= 0) {
    figures.us.push(us)
    figures.floor.push(bare)
  }
}
const [us, bare] = [median(figures.us), median(figures.floor)]
console.log('From the request that approves to the start of the tool, median of', ROUNDS)
console.log(`| bare POST and two durable commits | ${bare.toFixed(2)} ms |`)
console.log(
  `| the bridge, durable, through ADK | ${us.toFixed(2)} ms | ${(us / bare).toFixed(1)} × | goal ≤ 1.5 × |`,
)
await rm(folder, { recursive: true, force: true })
process.exit(0)

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { FunctionTool } from '@google/adk'
import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { toUpgradeListener } from 'adk-stream-protocol/use/node'
import Database from 'libsql'
import { WebSocket, WebSocketServer } from 'ws'

import { median } from '../statistics.ts'
import { LiveClient } from './client.ts'
import { createTalker, RUN_CONFIG } from './talker.ts'

const WARM_UP = 20

/** From the frame that decides to the first line of the tool: the bridge, and a bare socket with the two durable commits by hand. */
export async function measureDecision(rounds: number): Promise<{ us: number; floor: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'live-decision-'))
  const started = new Stopwatch()
  const bridge = await openBridge(folder, started)
  const floor = await openFloor(folder, started)
  const us: number[] = []
  const bare: number[] = []
  for (let round = -WARM_UP; round < rounds; round += 1) {
    const [ours, theirs] = [await bridge(), await floor()]
    if (round < 0) continue
    us.push(ours)
    bare.push(theirs)
  }
  await rm(folder, { recursive: true, force: true })
  return { us: median(us), floor: median(bare) }
}

class Stopwatch {
  stop: () => void = () => undefined

  time(act: () => void): Promise<number> {
    return new Promise((resolve) => {
      const from = performance.now()
      this.stop = () => resolve(performance.now() - from)
      act()
    })
  }
}

async function openBridge(folder: string, started: Stopwatch): Promise<() => Promise<number>> {
  const pay = new FunctionTool({
    name: 'pay',
    description: 'Pays.',
    requireConfirmation: true,
    execute: () => {
      started.stop()
      return { paid: true }
    },
  })
  const bridge = createBridge({
    agent: createTalker([pay]),
    store: await openSqliteStore({ path: join(folder, 'bridge.db') }),
    authenticate: () => ({ id: 'person' }),
    live: { runConfig: RUN_CONFIG },
    limits: { maxFramesPerSecond: 10_000 },
  })
  const server = createServer()
  server.on('upgrade', toUpgradeListener(bridge))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = await LiveClient.open(portOf(server.address()))
  return async () => {
    const [approvalId = ''] = await client.say('chat', '[[call pay {}]]')
    return started.time(() => client.decide('chat', approvalId))
  }
}

async function openFloor(folder: string, started: Stopwatch): Promise<() => Promise<number>> {
  const database = new Database(join(folder, 'floor.db'))
  database.exec(
    'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE approvals (id TEXT PRIMARY KEY, state TEXT)',
  )
  const insert = database.prepare('INSERT INTO approvals VALUES (?, ?)')
  const move = database.prepare('UPDATE approvals SET state = ? WHERE id = ? AND state = ?')
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  server.on('connection', (socket) => {
    socket.on('message', (data: Buffer) => {
      // Sent by this file.
      const { id } = JSON.parse(data.toString()) as { id: string }
      move.run('approved', id, 'requested')
      move.run('executing', id, 'approved')
      started.stop()
      socket.send('{}')
    })
  })
  await once(server, 'listening')
  const socket = new WebSocket(`ws://127.0.0.1:${portOf(server.address())}`)
  await once(socket, 'open')
  let round = 0
  return async () => {
    const id = `approval-${(round += 1)}`
    insert.run(id, 'requested')
    return started.time(() => socket.send(JSON.stringify({ id })))
  }
}

function portOf(address: ReturnType<WebSocketServer['address']>): number {
  // A server that listens on a port has such an address.
  return (address as AddressInfo).port
}

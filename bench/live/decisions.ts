import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

import type { RunConfig } from '@google/adk'
import { Gemini, LlmAgent, LogLevel, setLogLevel } from '@google/adk'
import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { toUpgradeListener } from 'adk-stream-protocol/use/node'
import Database from 'libsql'
import { WebSocket, WebSocketServer } from 'ws'

import { createPayTool } from '../paying-model.ts'
import { median } from '../statistics.ts'
import { LiveClient } from './client.ts'

const ROUNDS = 200
const WARM_UP = 30

let started: (at: number) => void = () => undefined

/** From the `decide` frame to the first line of the tool, beside a bare socket and the two durable commits by hand. */
export async function measureDecisions(
  baseUrl: string,
  folder: string,
): Promise<{ readonly bridgeMs: number; readonly floorMs: number }> {
  setLogLevel(LogLevel.ERROR)
  const [bridge, floor] = [await openBridge(baseUrl, folder), await openFloor(folder)]
  const figures: { bridge: number[]; floor: number[] } = { bridge: [], floor: [] }
  for (let round = -WARM_UP; round < ROUNDS; round += 1) {
    const [ours, bare] = [await bridge.decide(), await floor()]
    if (round < 0) continue
    figures.bridge.push(ours)
    figures.floor.push(bare)
  }
  await bridge.close()
  return { bridgeMs: median(figures.bridge), floorMs: median(figures.floor) }
}

interface OpenBridge {
  /** Measures one decision. */
  readonly decide: () => Promise<number>
  /** Ends the live sessions. Otherwise they would reconnect when the emulator closes. */
  readonly close: () => Promise<void>
}

async function openBridge(baseUrl: string, folder: string): Promise<OpenBridge> {
  class LiveGemini extends Gemini {
    protected override getLiveHttpOptions() {
      return { ...super.getLiveHttpOptions(), baseUrl }
    }
  }
  const pay = createPayTool(() => started(performance.now()))
  const model = new LiveGemini({ model: 'gemini-3.1-flash-live-preview', apiKey: 'any' })
  const agent = new LlmAgent({ name: 'assistant', model, tools: [pay] })
  const store = await openSqliteStore({ path: join(folder, 'decisions.db') })
  // The emulator writes where Gemini would speak.
  const runConfig = { responseModalities: ['TEXT'] } as unknown as Partial<RunConfig>
  const live = { model, runConfig }
  const bridge = createBridge({ agent, store, authenticate: () => ({ id: 'person' }), live })
  const server = createServer().on('upgrade', toUpgradeListener(bridge))
  const client = await LiveClient.open(`${await listen(server)}/live`)
  let round = 0
  const decide = async (): Promise<number> => {
    round += 1
    const id = `chat-${Math.floor(round / 20)}`
    const approvalId = await client.say(id, '[[call pay {}]] [[then]] [[say Paid.]]')
    const took = await timed(() =>
      client.send({ type: 'decide', decisionId: approvalId, id, approvalId, approved: true }),
    )
    // The next question waits until this answer has been told.
    await client.say(id, '[[say Next.]]')
    return took
  }
  const close = async (): Promise<void> => {
    client.close()
    await bridge.close()
    await store.close()
  }
  return { decide, close }
}

async function openFloor(folder: string): Promise<() => Promise<number>> {
  const database = new Database(join(folder, 'floor.db'))
  database.exec(
    'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE approvals (id TEXT PRIMARY KEY, state TEXT)',
  )
  const insert = database.prepare('INSERT INTO approvals VALUES (?, ?)')
  const move = database.prepare('UPDATE approvals SET state = ? WHERE id = ? AND state = ?')
  const server = createServer()
  new WebSocketServer({ server }).on('connection', (peer) => {
    peer.on('message', (data: Buffer) => {
      // The frame is ours.
      const { id } = JSON.parse(data.toString()) as { id: string }
      move.run('approved', id, 'requested')
      move.run('executing', id, 'approved')
      started(performance.now())
      peer.send('{}')
    })
  })
  const socket = new WebSocket(await listen(server))
  await once(socket, 'open')
  let round = 0
  return async () => {
    const id = `approval-${(round += 1)}`
    insert.run(id, 'requested')
    return timed(() => socket.send(JSON.stringify({ id })))
  }
}

async function timed(act: () => void): Promise<number> {
  const start = new Promise<number>((resolve) => {
    started = resolve
  })
  const from = performance.now()
  act()
  return (await start) - from
}

async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A server that listens on a port has such an address.
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
}

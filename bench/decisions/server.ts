// A server that accepts decisions, in its own process: the bridge, or the minimum that a correct server must do.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'

import { Gemini, LlmAgent, LogLevel, type RunConfig, setLogLevel } from '@google/adk'
import { webhook } from 'adk-stream-protocol/notify'
import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { toUpgradeListener } from 'adk-stream-protocol/use/node'
import Database from 'libsql'
import { WebSocketServer } from 'ws'

import { createPayTool, PayingModel } from '../paying-model.ts'
import { monotonicMs } from '../script.ts'

export type ServerKind =
  | 'http-floor'
  | 'http-bridge'
  /** The bridge with a webhook that is told of each approval. */
  | 'http-notify'
  | 'socket-floor'
  | 'socket-bridge'

/** The time at which a tool started, and the CPU time of this process since the request or frame arrived. */
export interface ToolStart {
  readonly atMs: number
  readonly cpuUs: number
}

const [kind, folder = '', baseUrl = ''] = process.argv.slice(2)
setLogLevel(LogLevel.ERROR)
let arrivedAt = process.cpuUsage()

function noteArrival(): void {
  arrivedAt = process.cpuUsage()
}

function noteStart(): void {
  const atMs = monotonicMs()
  const { user, system } = process.cpuUsage(arrivedAt)
  process.send?.({ atMs, cpuUs: user + system } satisfies ToolStart)
}

async function openBridge(isLive: boolean): Promise<Server> {
  const pay = createPayTool(noteStart)
  const model = isLive ? createLiveModel() : new PayingModel()
  const agent = new LlmAgent({ name: 'assistant', model, tools: [pay] })
  const store = await openSqliteStore({ path: join(folder, `${kind}.db`) })
  // The emulator sends text in place of speech.
  const runConfig = { responseModalities: ['TEXT'] } as unknown as Partial<RunConfig>
  const live = model instanceof Gemini ? { live: { model, runConfig } } : {}
  const secret = `whsec_${Buffer.alloc(32, 'bench').toString('base64')}`
  const notify = kind === 'http-notify' && {
    channels: { hook: webhook({ url: baseUrl, secret, allowPrivateNetwork: true }) },
  }
  const bridge = createBridge({
    agent,
    store,
    authenticate: () => ({ id: 'person' }),
    ...live,
    ...(notify && { notify }),
  })
  return createServer((request, response) => {
    noteArrival()
    void bridge.node(request, response)
  }).on('upgrade', toUpgradeListener(bridge))
}

function createLiveModel(): Gemini {
  class LiveGemini extends Gemini {
    protected override getLiveHttpOptions() {
      return { ...super.getLiveHttpOptions(), baseUrl }
    }
  }
  return new LiveGemini({ model: 'gemini-3.1-flash-live-preview', apiKey: 'any' })
}

/** The pending approvals, with the minimum that a server must store: the approver, the call and its state. */
function openApprovals(): {
  requestApproval: () => string
  decide: (id: string, body: unknown) => boolean
} {
  const database = new Database(join(folder, `${kind}.db`))
  database.exec(`
    PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
    CREATE TABLE approvals (id TEXT PRIMARY KEY, person TEXT, call TEXT, state TEXT)`)
  const insert = database.prepare('INSERT INTO approvals VALUES (?, ?, ?, ?)')
  const read = database.prepare('SELECT call FROM approvals WHERE id = ? AND person = ?')
  const move = database.prepare('UPDATE approvals SET state = ? WHERE id = ? AND state = ?')
  return {
    requestApproval: () => {
      const id = randomUUID()
      insert.run(id, 'person', JSON.stringify({ tool: 'pay', args: {} }), 'requested')
      return id
    },
    decide: (id, body) => {
      const isValid = typeof body === 'object' && body !== null && 'approved' in body
      if (!isValid || body.approved !== true) return false
      const [row] = read.all(id, 'person') as { call: string }[]
      if (!row) return false
      const { tool } = JSON.parse(row.call) as { tool: string }
      // After a crash, a lost decision would be requested again, and a lost claim would run the call twice.
      if (move.run('approved', id, 'requested').changes === 0) return false
      if (move.run('executing', id, 'approved').changes === 0) return false
      if (tool === 'pay') noteStart()
      return true
    },
  }
}

function openHttpFloor(): Server {
  const { requestApproval, decide } = openApprovals()
  return createServer((request, response) => {
    noteArrival()
    void (async () => {
      const body = await readJson(request)
      const id = request.url?.split('/')[2]
      if (id === undefined) response.end(JSON.stringify({ approvalId: requestApproval() }))
      else response.writeHead(decide(id, body) ? 200 : 409).end('{}')
    })()
  })
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  let text = ''
  request.setEncoding('utf8')
  for await (const piece of request) text += String(piece)
  return JSON.parse(text)
}

function openSocketFloor(): Server {
  const { requestApproval, decide } = openApprovals()
  const server = createServer()
  new WebSocketServer({ server }).on('connection', (peer) => {
    peer.on('message', (data: Buffer) => {
      // The frames are those of `LiveClient`.
      const frame = JSON.parse(data.toString()) as Record<string, string>
      const { type, requestId, approvalId = '' } = frame
      if (type === 'decide') {
        const isDecided = decide(approvalId, frame)
        return peer.send(JSON.stringify({ type: isDecided ? 'decided' : 'error' }))
      }
      const chunk = { approvalId: requestApproval() }
      peer.send(JSON.stringify({ type: 'chunk', requestId, chunk }))
      peer.send(JSON.stringify({ type: 'end', requestId }))
    })
  })
  return server
}

async function openServer(): Promise<Server> {
  if (kind === 'http-floor') return openHttpFloor()
  if (kind === 'socket-floor') return openSocketFloor()
  return openBridge(kind === 'socket-bridge')
}

const server = await openServer()
server.prependListener('upgrade', (_request: IncomingMessage, socket: Socket) => {
  socket.on('data', noteArrival)
})
// Connections are idle while the other server is measured.
server.keepAliveTimeout = 0
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.on('disconnect', () => process.exit())
// A server that listens on a port has such an address.
process.send?.((server.address() as AddressInfo).port)

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { LiveClient } from '../live-client.ts'
import { monotonicMs } from '../script.ts'
import { pinLoad, pinnedTo, profiling } from '../server-process.ts'
import { median } from '../statistics.ts'
import type { ServerKind, ToolStart } from './server.ts'

const ROUNDS = 100
/** Rounds in which the servers compile their code. */
const WARM_UP = 1_000
/** Long enough for the work after a request to end, so that it does not count for the next one: with a webhook, three durable commits. */
const PAUSE_MS = 150

/** Medians of one server: the time from sending a decision to the start of the tool, and the CPU time of the server in that time. */
interface DecisionFigures {
  readonly ms: number
  readonly cpuUs: number
}

/** The folder of the databases, and the URL of the emulated model of live sessions, or of the receiver of webhooks. */
export interface Environment {
  readonly folder: string
  readonly baseUrl?: string
}

/** The figures of the servers, and with `http` those of a bridge with a webhook, and how many notices arrived. */
interface MeasuredDecisions {
  readonly floor: DecisionFigures
  readonly bridge: DecisionFigures
  readonly notify?: DecisionFigures
  readonly received?: number
}

/** Measures the bridge and the floor alternately. Each has its own process. The client is in this one. */
export async function measureDecisions(
  over: 'http' | 'socket',
  environment: Environment,
): Promise<MeasuredDecisions> {
  pinLoad()
  const floor = await openSubject(`${over}-floor`, environment)
  const bridge = await openSubject(`${over}-bridge`, environment)
  const receiver = over === 'http' ? await startReceiver() : undefined
  const notify =
    receiver && (await openSubject('http-notify', { ...environment, baseUrl: receiver.url }))
  const taken = {
    floor: [] as DecisionFigures[],
    bridge: [] as DecisionFigures[],
    notify: [] as DecisionFigures[],
  }
  for (let round = -WARM_UP; round < ROUNDS; round += 1) {
    const pauseMs = round < 0 ? 0 : PAUSE_MS
    const floorFigures = await floor.decide(pauseMs)
    // Who comes first has a warmer disk.
    const isBridgeFirst = round % 2 === 0
    const first = isBridgeFirst ? await bridge.decide(pauseMs) : undefined
    const told = await notify?.decide(pauseMs)
    const bridgeFigures = first ?? (await bridge.decide(pauseMs))
    if (round < 0) continue
    taken.floor.push(floorFigures)
    taken.bridge.push(bridgeFigures)
    if (told) taken.notify.push(told)
  }
  await Promise.all([floor.close(), bridge.close(), notify?.close()])
  return {
    floor: toMedians(taken.floor),
    bridge: toMedians(taken.bridge),
    ...(receiver && { notify: toMedians(taken.notify), received: receiver.close() }),
  }
}

function toMedians(figures: readonly DecisionFigures[]): DecisionFigures {
  return { ms: median(figures.map(({ ms }) => ms)), cpuUs: median(figures.map((f) => f.cpuUs)) }
}

/** Starts a receiver of webhooks in this process. `close` returns how many it has received. */
async function startReceiver(): Promise<{ readonly url: string; readonly close: () => number }> {
  let received = 0
  const server = createServer((request, response) => {
    received += 1
    request.resume().on('end', () => response.writeHead(204).end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A server that listens on a port has such an address.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    close: () => {
      server.close()
      return received
    },
  }
}

interface Subject {
  /** Requests an approval, and measures its decision after a pause. */
  readonly decide: (pauseMs: number) => Promise<DecisionFigures>
  readonly close: () => Promise<void>
}

async function openSubject(kind: ServerKind, environment: Environment): Promise<Subject> {
  const child = startServer(kind, environment)
  // The first message of a server is its port.
  const [port] = (await once(child, 'message')) as [number]
  const client = kind.startsWith('http') ? openHttp(port) : await openSocket(port)
  const decide = async (pauseMs: number): Promise<DecisionFigures> => {
    const approval = await client.requestApproval()
    await delay(pauseMs)
    const started = once(child, 'message')
    const from = monotonicMs()
    const responded = client.approve(approval)
    // After its port, a server sends only the starts of tools.
    const [{ atMs, cpuUs }] = (await started) as [ToolStart]
    await responded
    await client.finish(approval)
    await delay(pauseMs)
    return { ms: atMs - from, cpuUs }
  }
  const close = async (): Promise<void> => {
    client.close()
    const exited = once(child, 'exit')
    child.disconnect()
    await exited
  }
  return { decide, close }
}

function startServer(kind: ServerKind, { folder, baseUrl = '' }: Environment): ChildProcess {
  const script = fileURLToPath(new URL('server.ts', import.meta.url))
  const node = [process.execPath, '--import', 'tsx', ...profiling(kind), script]
  const [command, ...args] = [...pinnedTo(0), ...node, kind, folder, baseUrl]
  return spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}

interface RequestedApproval {
  readonly chatId: string
  readonly approvalId: string
}

interface DecisionClient {
  readonly requestApproval: () => Promise<RequestedApproval>
  readonly approve: (approval: RequestedApproval) => Promise<unknown>
  /** Waits for the end of the reply, before the next approval is requested. */
  readonly finish: (approval: RequestedApproval) => Promise<unknown>
  readonly close: () => void
}

/** Each approval has its own chat. */
function openHttp(port: number): DecisionClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const headers = { 'content-type': 'application/json' }
  const post = async (path: string, body: unknown): Promise<string> => {
    const request = httpRequest({ host: '127.0.0.1', port, path, method: 'POST', agent, headers })
    request.end(JSON.stringify(body))
    // The event has this argument.
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    let text = ''
    for await (const piece of response.setEncoding('utf8')) text += String(piece)
    if (response.statusCode !== 200) throw new Error(`A server responded with ${text}`)
    return text
  }
  let chats = 0
  return {
    requestApproval: async () => {
      const chatId = `chat-${(chats += 1)}`
      const messages = [{ role: 'user', content: 'pay' }]
      const reply = await post('/stream', { id: chatId, messages })
      return { chatId, approvalId: /"approvalId":"([^"]+)"/.exec(reply)?.[1] ?? '' }
    },
    approve: ({ approvalId }) => post(`/approvals/${approvalId}`, { approved: true }),
    finish: async () => undefined,
    close: () => agent.destroy(),
  }
}

/** 20 approvals share a chat. */
async function openSocket(port: number): Promise<DecisionClient> {
  const client = await LiveClient.open(`ws://127.0.0.1:${port}/live`)
  let count = 0
  return {
    requestApproval: async () => {
      const chatId = `chat-${Math.floor((count += 1) / 20)}`
      const approvalId = await client.sendMessage(chatId, '[[call pay {}]] [[then]] [[say Paid.]]')
      return { chatId, approvalId }
    },
    approve: async ({ chatId: id, approvalId }) => {
      client.send({ type: 'decide', decisionId: approvalId, id, approvalId, approved: true })
    },
    finish: ({ chatId }) => client.sendMessage(chatId, '[[say Next.]]'),
    close: () => client.close(),
  }
}

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { createBridge } from 'adk-stream-protocol/server'
import { toNodeListener, toUpgradeListener } from 'adk-stream-protocol/use/node'

import type { Script } from './script.ts'
import { scriptedAgent } from './scripted-model.ts'

// What idle sockets and stalled readers cost in memory:
// `node --conditions @adk-stream-protocol/source --import tsx bench/memory.ts [sockets]`. The server is a process of its own.

interface Memory {
  readonly heap: number
  readonly external: number
  readonly rss: number
}

async function serve(): Promise<void> {
  const bridge = createBridge({
    agent: scriptedAgent(),
    authenticate: () => ({ id: 'somebody' }),
    limits: { maxSocketsPerPrincipal: 100_000 },
  })
  const server = createServer(toNodeListener(bridge)).listen(0, '127.0.0.1', 4_096)
  server.on('upgrade', toUpgradeListener(bridge))
  await once(server, 'listening')
  process.on('message', () => {
    global.gc?.()
    global.gc?.()
    const { heapUsed, external, rss } = process.memoryUsage()
    process.send?.({ heap: heapUsed, external, rss } satisfies Memory)
  })
  process.send?.((server.address() as AddressInfo).port)
}

async function measure(sockets: number): Promise<void> {
  const args = [...process.execArgv, '--expose-gc', fileURLToPath(import.meta.url), 'server']
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const [port] = (await once(server, 'message')) as [number]
  const open: Socket[] = []
  await openSockets(port, 100, open)
  const before = await read(server)
  await openSockets(port, sockets, open)
  const after = await read(server)
  console.log(`${sockets} idle sockets: heap ${kib((after.heap - before.heap) / sockets)} each,`)
  console.log(`  beside the heap ${kib((after.external - before.external) / sockets)} each,`)
  console.log(`  RSS ${mib(after.rss)}, ${kib((after.rss - before.rss) / sockets)} each`)
  for (const socket of open) socket.destroy()
  await delay(2_000)
  for (const kind of ['sse', 'socket'] as const) {
    const from = await read(server)
    const stalled = await stall(port, kind)
    await delay(3_000)
    const to = await read(server)
    const grown = to.heap + to.external - from.heap - from.external
    console.log(
      `a stalled reader over ${kind}: ${mib(grown)} of heap and buffers, RSS ${mib(to.rss - from.rss)}`,
    )
    stalled.destroy()
    await delay(1_000)
  }
  server.kill()
}

function kib(bytes: number): string {
  return `${(bytes / 1_024).toFixed(1)} KiB`
}

function mib(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`
}

async function read(server: ChildProcess): Promise<Memory> {
  await delay(500)
  server.send('read')
  const [memory] = (await once(server, 'message')) as [Memory]
  return memory
}

const UPGRADE = [
  'GET /live HTTP/1.1',
  'Host: localhost',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  'Accept-Language: en-US,en;q=0.9',
  '\r\n',
].join('\r\n')

async function openSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.write(UPGRADE)
  // The answer, and the first frame.
  await once(socket, 'data')
  return socket
}

async function openSockets(port: number, count: number, open: Socket[]): Promise<void> {
  for (let from = 0; from < count; from += 100) {
    const batch = Array.from({ length: Math.min(100, count - from) }, () => openSocket(port))
    open.push(...(await Promise.all(batch)))
  }
  for (const socket of open) socket.resume()
}

/** Asks for a long answer and reads nothing of it. */
async function stall(port: number, kind: 'sse' | 'socket'): Promise<Socket> {
  const text = JSON.stringify({ tokens: 60_000, length: 1_000, ending: 'hold' } satisfies Script)
  const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
  const chat = { id: `stalled-${kind}`, trigger: 'submit-message', messages: [message] }
  if (kind === 'sse') {
    const body = JSON.stringify(chat)
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `POST /stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    return socket
  }
  const socket = await openSocket(port)
  socket.pause()
  socket.write(toFrame(JSON.stringify({ type: 'send', requestId: 'r1', ...chat })))
  return socket
}

/** A masked text frame with the mask 0. */
function toFrame(text: string): Buffer {
  const payload = Buffer.from(text)
  const head = Buffer.alloc(8)
  head.writeUInt8(0x81, 0)
  head.writeUInt8(0x80 | 126, 1)
  head.writeUInt16BE(payload.length, 2)
  return Buffer.concat([head, payload])
}

if (process.argv[2] === 'server') await serve()
else await measure(Number(process.argv[2] ?? 2_000))

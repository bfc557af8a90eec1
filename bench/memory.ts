import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { build } from 'esbuild'

import type { Memory, Question } from './memory/server.ts'
import type { Script } from './script.ts'

// What idle sockets and stalled readers cost in memory: `npm run bench:memory [-- <sockets>]`. Each server is a process of its own, the
// clients are in this one. `BENCH_SNAPSHOTS=<directory>` writes a heap snapshot of each server after each step.

const SOCKETS = Number(process.argv[2] ?? 10_000)
const SNAPSHOTS = process.env['BENCH_SNAPSHOTS']

/** Compiles the script of the servers to JavaScript that imports the published packages. */
async function compileServer(): Promise<string> {
  const {
    outputFiles: [file],
  } = await build({
    entryPoints: [fileURLToPath(new URL('memory/server.ts', import.meta.url))],
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    write: false,
  })
  if (!file) throw new Error('esbuild wrote nothing.')
  return file.text
}

class Server {
  readonly kind: 'ws' | 'bridge'
  readonly port: number
  readonly #child: ChildProcess

  private constructor(kind: 'ws' | 'bridge', child: ChildProcess, port: number) {
    this.kind = kind
    this.#child = child
    this.port = port
  }

  static async start(kind: 'ws' | 'bridge', code: string): Promise<Server> {
    const args = ['--expose-gc', '--input-type=module', '--eval', code, kind]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    // The first message of a server is its port.
    const [port] = (await once(child, 'message')) as [number]
    return new Server(kind, child, port)
  }

  async read(): Promise<Memory> {
    // Work in progress ends first.
    await delay(500)
    return this.#ask({ type: 'read' })
  }

  async snapshot(sockets: number): Promise<void> {
    if (SNAPSHOTS === undefined) return
    const path = `${SNAPSHOTS}/${this.kind}-${sockets}.heapsnapshot`
    await this.#ask({ type: 'snapshot', path })
  }

  stop(): void {
    this.#child.disconnect()
  }

  async #ask(question: Question): Promise<Memory> {
    this.#child.send(question)
    const [memory] = (await once(this.#child, 'message')) as [Memory]
    return memory
  }
}

/** Returns the heap per socket, in bytes, with all sockets open. */
async function measureSockets(server: Server): Promise<number> {
  // Warms up: the first sockets also cause compilation and the allocation of tables.
  const warmUp = await openSockets(server.port, 100)
  await closeSockets(warmUp)
  const none = await server.read()
  console.log(toRow(server, 0, none, none))
  const open: Socket[] = []
  let memory = none
  for (const count of [Math.ceil(SOCKETS / 10), SOCKETS]) {
    open.push(...(await openSockets(server.port, count - open.length)))
    memory = await server.read()
    console.log(toRow(server, count, none, memory))
    await server.snapshot(count)
  }
  if (server.kind === 'bridge') {
    await Promise.all(open.map(resume))
    console.log(
      toRow({ kind: 'bridge, each has sent `resume`' }, SOCKETS, none, await server.read()),
    )
    await server.snapshot(SOCKETS + 1)
  }
  await closeSockets(open)
  return (memory.heap - none.heap) / SOCKETS
}

function toRow(
  { kind }: { readonly kind: string },
  sockets: number,
  none: Memory,
  memory: Memory,
): string {
  const each = (field: keyof Memory): string =>
    sockets === 0 ? '' : kib((memory[field] - none[field]) / sockets)
  const { heap, rss } = memory
  const cells = [kind, sockets, mib(rss), each('rss'), mib(heap), each('heap'), each('external')]
  return `| ${cells.join(' | ')} |`
}

async function measureStalled(server: Server): Promise<void> {
  for (const kind of ['sse', 'socket'] as const) {
    const from = await server.read()
    const stalled = await stall(server.port, kind)
    await delay(3_000)
    const to = await server.read()
    const grown = to.heap + to.external - from.heap - from.external
    console.log(
      `a stalled reader over ${kind}: ${mib(grown)} of heap and buffers, RSS ${mib(to.rss - from.rss)}`,
    )
    await closeSockets([stalled])
  }
}

function kib(bytes: number): string {
  return `${(bytes / 1_024).toFixed(1)} KiB`
}

function mib(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`
}

const UPGRADE = [
  'GET /live HTTP/1.1',
  'Host: localhost',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Protocol: adk-stream.v1',
  'Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  'Accept-Language: en-US,en;q=0.9',
  '\r\n',
].join('\r\n')

async function openSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.write(UPGRADE)
  let received = ''
  // The response to the upgrade, and the first frame.
  while (!received.includes('hello')) {
    const [data] = (await once(socket, 'data')) as [Buffer]
    received += data.toString('latin1')
  }
  socket.on('data', (data: Buffer) => {
    // A ping of the server.
    if (data.includes(PING)) socket.write(PONG)
  })
  return socket
}

const PING = Buffer.of(0x89, 0)

/** A masked frame, as every frame of a client must be. */
const PONG = Buffer.of(0x8a, 0x80, 0, 0, 0, 0)

async function openSockets(port: number, count: number): Promise<Socket[]> {
  const open: Socket[] = []
  for (let from = 0; from < count; from += 100) {
    const batch = Array.from({ length: Math.min(100, count - from) }, () => openSocket(port))
    open.push(...(await Promise.all(batch)))
  }
  return open
}

async function closeSockets(sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) socket.destroy()
  // Waits until the server has closed its ends.
  await delay(1_000)
}

/** Requests to resume a chat that has no running turn, as a page does when it is opened. */
async function resume(socket: Socket): Promise<void> {
  socket.write(toFrame(JSON.stringify({ type: 'resume', requestId: 'r1', id: 'chat-1' })))
  let received = ''
  while (!received.includes('no-active')) {
    const [data] = (await once(socket, 'data')) as [Buffer]
    received += data.toString('latin1')
  }
}

/** Requests a long reply and does not read it. */
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
  if (payload.length < 126)
    return Buffer.concat([Buffer.of(0x81, 0x80 | payload.length, 0, 0, 0, 0), payload])
  const head = Buffer.alloc(8)
  head.writeUInt8(0x81, 0)
  head.writeUInt8(0x80 | 126, 1)
  head.writeUInt16BE(payload.length, 2)
  return Buffer.concat([head, payload])
}

const code = await compileServer()
console.log('| server | sockets | RSS | RSS each | heap | heap each | beside the heap, each |')
console.log('| --- | --- | --- | --- | --- | --- | --- |')
const bare = await Server.start('ws', code)
const floor = await measureSockets(bare)
bare.stop()
const bridge = await Server.start('bridge', code)
const ours = await measureSockets(bridge)
console.log(`heap of a socket, bridge / ws: ${(ours / floor).toFixed(2)}`)
await measureStalled(bridge)
bridge.stop()
process.exit(0)

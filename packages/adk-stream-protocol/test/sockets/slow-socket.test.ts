import { once } from 'node:events'
import type { Duplex } from 'node:stream'

import { InMemorySessionService } from '@google/adk'
import { expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'

import { portOf } from '../../../../test/support/listen.ts'
import { jsonCodec } from '../../src/server/sockets/frame-codec.ts'
import {
  ClosingSocket,
  createTokenBucket,
  Heartbeats,
  SocketPeer,
} from '../../src/server/sockets/socket-peer.ts'
import { DEFAULT_LIMITS } from '../../src/server/settings/limits.ts'
import { assistant, defer, FloodModel } from '../support/agents.ts'
import { serve, type ServeOptions } from '../support/serve.ts'
import { SocketClient } from './support/socket-client.ts'

const MEBI = 1_048_576

function flooded(model: FloodModel, options: ServeOptions = {}): ServeOptions {
  return {
    agent: () => assistant(model),
    authenticate: () => ({ id: 'hanako' }),
    sessionService: new InMemorySessionService(),
    recorded: false,
    onChunk: () => undefined,
    ...options,
  }
}

test('[WS14] a socket that is not read pauses the model, buffers little, and continues when it is read', async () => {
  const model = new FloodModel({ pieces: 7_500, length: 8_192 })
  await using server = await serve(flooded(model))
  await using client = await SocketClient.open(server.url)
  const before = process.memoryUsage().heapUsed
  client.say('Go')
  await client.nextOf('start', 'r1')
  client.socket.pause()
  const produced = await model.paused()
  expect(produced).toBeLessThan(3_750)
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * MEBI)
  client.socket.resume()
  while (model.produced < produced + 125) await new Promise(setImmediate)
  client.socket.terminate()
  await model.aborted
})

test('[WS14] a slow socket receives each of its replies completely', async () => {
  const model = new FloodModel({ pieces: 250, length: 65_536 })
  await using server = await serve(flooded(model, { limits: { maxReplay: 64 * MEBI } }))
  await using client = await SocketClient.open(server.url)
  client.say('Go', 'r1', 'chat-1')
  client.say('Go', 'r2', 'chat-2')
  await client.nextOf('start', 'r2')
  client.socket.pause()
  await model.paused()
  client.socket.resume()
  await Promise.all([client.nextOf('end', 'r1'), client.nextOf('end', 'r2')])
  // Both turns draw from one model.
  const length = client.text('r1').length + client.text('r2').length
  expect(length).toBe(model.produced * 65_536 + 2)
  for (const requestId of ['r1', 'r2']) expect(await client.faults(requestId)).toEqual([])
})

test('[WS14] a reply that is not read in time ends with an error, and can be resumed', async () => {
  const hold = defer()
  // More than the kernel's buffers of a connection hold.
  const pieces = 320
  const model = new FloodModel({ pieces, length: 65_536, hold: hold.promise })
  await using server = await serve(
    flooded(model, {
      disconnectGraceMs: 60_000,
      limits: { stallTimeoutMs: 1_000, maxReplay: 64 * MEBI },
    }),
  )
  await using client = await SocketClient.open(server.url)
  client.say('Go')
  await client.nextOf('start', 'r1')
  client.socket.pause()
  while (model.produced < pieces) await new Promise(setImmediate)
  client.socket.resume()
  expect(await client.nextOf('error', 'r1')).toMatchObject({ code: 'too-slow' })
  client.resume('r2')
  await client.nextOf('start', 'r2')
  hold.resolve()
  await client.nextOf('end', 'r2')
  expect(client.text('r2')).toHaveLength(pieces * 65_536 + 1)
})

test('[WS14] a client that sends requests and does not read is disconnected', async () => {
  await using server = await serve(
    flooded(new FloodModel({ pieces: 1, length: 1 }), {
      limits: { maxFramesPerSecond: 1_000_000 },
    }),
  )
  await using client = await SocketClient.open(server.url)
  client.socket.pause()
  const nonce = 'x'.repeat(128)
  // The close frame cannot be read either. The next writes find that the connection has ended.
  while (client.socket.readyState === WebSocket.OPEN) {
    for (let count = 0; count < 1_000; count += 1) client.send({ type: 'ping', nonce })
    await new Promise(setImmediate)
  }
  expect([4409, 1006]).toContain(await client.closed)
  await using other = await SocketClient.open(server.url)
  await other.sync()
})

test('[WS17] a client that does not respond to pings is disconnected, and its reply can be resumed', async () => {
  await using server = await serve({
    authenticate: () => ({ id: 'hanako' }),
    disconnectGraceMs: 60_000,
    limits: { keepAliveMs: 100 },
  })
  await using dead = await SocketClient.open(server.url, { autoPong: false })
  dead.say('[[say One.]][[wait gate]][[say Two.]]')
  await server.emulator.nextRequest()
  // The close frame may be lost with the connection.
  expect([4408, 1006]).toContain(await dead.closed)
  await using client = await SocketClient.open(server.url)
  client.resume('again')
  await client.untilText('One.', 'again')
  server.emulator.release('gate')
  await client.nextOf('end', 'again')
  expect(client.text('again')).toBe('One.Two.')
})

test('[WS17] a client that responds to pings stays connected, even if it sends nothing else', async () => {
  await using server = await serve({
    authenticate: () => ({ id: 'hanako' }),
    limits: { keepAliveMs: 50 },
  })
  await using client = await SocketClient.open(server.url)
  for (let pings = 0; pings < 10; pings += 1) await once(client.socket, 'ping')
  await client.sync()
  expect(client.socket.readyState).toBe(WebSocket.OPEN)
})

test('[WS17] a peer is dead after three missed pings in a row; any frame resets the count', async () => {
  const dead = defer()
  let pings = 0
  const heartbeats = new Heartbeats(5)
  const peer = {
    ping: () => {
      pings += 1
      if (pings === 2) heartbeats.beat(peer)
    },
    onDead: () => dead.resolve(),
  }
  heartbeats.add(peer)
  // Other peers on the same timer, and one that is removed, do not affect it.
  let others = 0
  const living = {
    ping: () => {
      others += 1
      heartbeats.beat(living)
    },
    onDead: () => undefined,
  }
  heartbeats.add(living)
  const leaving = { ping: () => heartbeats.remove(leaving), onDead: () => undefined }
  heartbeats.add(leaving)
  await dead.promise
  heartbeats.remove(living)
  expect(pings).toBe(4)
  expect(others).toBeGreaterThanOrEqual(3)
})

test('[WS15] a token bucket allows its rate, and bursts up to its size', () => {
  let now = 0
  const take = createTokenBucket(10, () => now)
  expect(take(20)).toBe(true)
  expect(take(1)).toBe(false)
  now = 100
  expect(take(1)).toBe(true)
  expect(take(1)).toBe(false)
  now = 1_000_000
  expect(take(21)).toBe(false)
  expect(take(20)).toBe(true)
})

const ignore = (): void => undefined
const events = {
  codec: jsonCodec,
  onFirst: ignore,
  onFrame: ignore,
  onAudio: ignore,
  onDrain: ignore,
  onClose: ignore,
}

/** A peer on a real connection, without a bridge around it. */
async function openPeer(): Promise<{ peer: SocketPeer; client: SocketClient } & AsyncDisposable> {
  const accepted = defer<{ socket: ClosingSocket; stream: Duplex }>()
  const server = new WebSocketServer({
    WebSocket: ClosingSocket,
    port: 0,
    host: '127.0.0.1',
    path: '/live',
  })
  server.on('connection', (socket, { socket: stream }) => accepted.resolve({ socket, stream }))
  await once(server, 'listening')
  const port = portOf(server)
  const client = await SocketClient.open(`http://127.0.0.1:${port}`)
  const peer = new SocketPeer(
    { ...(await accepted.promise), heartbeats: new Heartbeats(DEFAULT_LIMITS.keepAliveMs) },
    DEFAULT_LIMITS,
    events,
  )
  return {
    peer,
    client,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]()
      await peer.closed()
      server.close()
    },
  }
}

test('[WS21] audio for a client that is too slow is dropped and counted, and not buffered', async () => {
  await using open = await openPeer()
  const { peer, client } = open
  client.socket.pause()
  const piece = Buffer.alloc(4_800)
  let sent = 0
  // More than the buffers of the kernel hold, on either side.
  for (let count = 0; count < 10_000; count += 1) {
    if (peer.sendAudio(piece)) sent += 1
    if (count % 100 === 0) await new Promise(setImmediate)
  }
  expect(peer.droppedAudio).toBe(10_000 - sent)
  expect(peer.droppedAudio).toBeGreaterThan(1_000)
  client.socket.resume()
  while (client.binary.length < sent) await new Promise(setImmediate)
  expect(peer.sendAudio(piece)).toBe(true)
})

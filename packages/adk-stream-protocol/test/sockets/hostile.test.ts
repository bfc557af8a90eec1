import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { deflateRawSync } from 'node:zlib'

import { expect, test } from 'vitest'

import { serve, type ServeOptions } from '../support/serve.ts'
import { SocketClient } from './support/socket-client.ts'

const hanako: ServeOptions = { authenticate: () => ({ id: 'hanako' }) }

/** A turn that is being read during an attack, and must not be affected. */
async function bystander(url: string): Promise<SocketClient> {
  const client = await SocketClient.open(url)
  client.say('[[say One.]][[wait gate]][[say Two.]]', 'r1', 'bystander')
  await client.untilText('One.')
  return client
}

async function expectUnharmed(client: SocketClient, release: () => void): Promise<void> {
  release()
  await client.nextOf('end', 'r1')
  expect(client.text()).toBe('One.Two.')
  expect(await client.faults()).toEqual([])
}

/** A connection after the handshake, for bytes that no library would send. */
async function openRaw(url: string, extensions = ''): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  const lines = [
    'GET /live HTTP/1.1',
    `host: ${hostname}:${port}`,
    'connection: Upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
    ...(extensions === '' ? [] : [`sec-websocket-extensions: ${extensions}`]),
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  const [head] = (await once(socket, 'data')) as [Buffer]
  expect(head.toString('latin1')).toMatch(/^HTTP\/1\.1 101 /)
  expect(head.toString('latin1').toLowerCase()).not.toContain('sec-websocket-extensions')
  return socket
}

/** A masked frame, with a mask that changes nothing. */
function frame(firstByte: number, payload: Uint8Array, claimed = payload.byteLength): Buffer {
  const length =
    claimed < 126
      ? Buffer.from([0x80 | claimed])
      : Buffer.concat([Buffer.from([0x80 | 127]), toUint64(claimed)])
  return Buffer.concat([Buffer.from([firstByte]), length, Buffer.alloc(4), payload])
}

function toUint64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}

/** The code of the close frame that the server sends. */
async function closeCodeOf(socket: Socket): Promise<number> {
  const received: Buffer[] = []
  socket.on('data', (data: Buffer) => received.push(data))
  await once(socket, 'close')
  const bytes = Buffer.concat(received)
  const at = bytes.lastIndexOf(0x88)
  return bytes.readUInt16BE(at + 2)
}

const FIN_TEXT = 0x81
const TEXT = 0x01
const CONTINUATION = 0x00
const COMPRESSED_TEXT = 0xc1

test.each([
  ['invalid UTF-8', 1007, frame(FIN_TEXT, Buffer.from([0x22, 0xff, 0x22]))],
  [
    'more than a frame may hold, before any of it is kept',
    1009,
    frame(FIN_TEXT, Buffer.alloc(0), 1_099_511_627_776),
  ],
  ['a compressed frame', 1002, frame(COMPRESSED_TEXT, deflateRawSync(Buffer.alloc(1_000)))],
  ['a reserved opcode', 1002, frame(0x83, Buffer.alloc(1))],
  ['a frame without a mask', 1002, Buffer.from([FIN_TEXT, 0x02, 0x7b, 0x7d])],
  [
    'an endless row of fragments',
    1008,
    Buffer.concat([
      frame(TEXT, Buffer.from('a')),
      ...Array.from({ length: 20_000 }, () => frame(CONTINUATION, Buffer.from('a'))),
    ]),
  ],
])(
  '[WS13] %s closes the socket with %i, and other sockets continue',
  async (_name, code, bytes) => {
    await using server = await serve(hanako)
    await using other = await bystander(server.url)
    const socket = await openRaw(server.url, 'permessage-deflate; client_max_window_bits')
    const closed = closeCodeOf(socket)
    socket.write(bytes)
    expect(await closed).toBe(code)
    await expectUnharmed(other, () => server.emulator.release('gate'))
  },
)

test('[WS13] a message over the limit closes the socket with 1009; one below it is read', async () => {
  await using server = await serve({ ...hanako, limits: { maxBodyBytes: 10_000 } })
  await using client = await SocketClient.open(server.url)
  client.say(`[[say Fine.]]${' '.repeat(9_000)}`)
  await client.nextOf('end', 'r1')
  client.say(' '.repeat(10_001), 'r2')
  expect(await client.closed).toBe(1009)
})

test('[WS13] a connection that is lost during the handshake or a frame causes no error', async () => {
  await using server = await serve(hanako)
  const { hostname, port } = new URL(server.url)
  for (let count = 0; count < 20; count += 1) {
    const half = connect(Number(port), hostname)
    half.on('error', () => undefined)
    half.write('GET /live HTTP/1.1\r\nconnection: Upgrade\r\nupgrade: webso')
    const socket = await openRaw(server.url)
    socket.write(frame(FIN_TEXT, Buffer.from('{"type"'), 100))
    socket.resetAndDestroy()
    half.resetAndDestroy()
  }
  await using client = await SocketClient.open(server.url)
  client.say('[[say Fine.]]')
  await client.nextOf('end', 'r1')
  expect(server.errors).toEqual([])
})

test.each([
  ['frames', (client: SocketClient) => client.send({ type: 'abort', requestId: 'x' })],
  ['malformed frames', (client: SocketClient) => client.send('{')],
  ['pings of the protocol', (client: SocketClient) => client.socket.ping()],
  ['audio', (client: SocketClient) => client.socket.send(Buffer.alloc(60_000))],
  [
    'pieces of audio that are too large',
    (client: SocketClient) => client.socket.send(Buffer.alloc(70_000)),
  ],
])(
  '[WS15] too many %s close the socket with 4429, and other sockets continue',
  async (_name, send) => {
    // A low rate: on a busy machine a flood is slow too.
    await using server = await serve({ ...hanako, limits: { maxFramesPerSecond: 20 } })
    await using other = await bystander(server.url)
    await using client = await SocketClient.open(server.url)
    for (let count = 0; count < 500; count += 1) send(client)
    expect(await client.closed).toBe(4429)
    // The number of single rejections is limited.
    expect(client.frames.length).toBeLessThan(60)
    await expectUnharmed(other, () => server.emulator.release('gate'))
  },
)

test('[WS15] audio over the limit of size or rate is rejected by name', async () => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url)
  client.socket.send(Buffer.alloc(65_537))
  expect(await client.next(({ code }) => code === 'too-large')).toMatchObject({ frame: 'binary' })
  // Two seconds' worth of four times real time, and one piece more.
  for (let sent = 0; sent < 300_000; sent += 60_000) client.socket.send(Buffer.alloc(60_000))
  expect(await client.next(({ code }) => code === 'too-fast')).toMatchObject({ frame: 'binary' })
  await client.sync()
})

test('[WS15] audio in real time is never rejected as too fast', async () => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url)
  // Two seconds at once, as after a short network failure: 100 pieces of 20 ms.
  for (let count = 0; count < 100; count += 1) client.socket.send(Buffer.alloc(640))
  await client.sync()
  const codes = client.frames.flatMap(({ code }) => code ?? [])
  expect(new Set(codes)).toEqual(new Set(['not-live']))
})

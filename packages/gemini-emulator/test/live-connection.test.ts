import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'

import { expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'

import { portOf } from '../../../test/support/listen.ts'
import { createConnection } from '../src/live/connection.ts'
import type { Action } from '../src/responders/responder.ts'
import {
  connect,
  connectRaw,
  kinds,
  replies,
  say,
  startLive,
  TEXT_SETUP,
  textOf,
  formatClose,
  PATH,
  turnComplete,
  wait,
} from './support/live-server.ts'

test('[EL44] goAway is sent, then the connection closes with 1001', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  server.live.sessions[0]?.goAway(50)
  const messages = await client.until((message) => message.goAway)
  expect(messages.at(-1)?.goAway?.timeLeft).toBe('0.05s')
  expect(await client.closed).toMatchObject({ code: 1001 })
})

test('[EL1082] a connection closes after its lifetime, and goAway announces it', async () => {
  await using server = await startLive({ lifetimeMs: 40 })
  await using client = await connect(server)
  const messages = await client.until((message) => message.goAway)
  expect(messages.at(-1)?.goAway?.timeLeft).toBe('0.02s')
  expect(await client.closed).toMatchObject({ code: 1011 })
})

test('[EL1083] a pong takes the time of the option', async () => {
  await using server = await startLive({ pongDelayMs: 50 })
  const socket = new WebSocket(`${server.baseUrl.replace('http', 'ws')}${PATH}?key=any`)
  await once(socket, 'open')
  const sentAt = performance.now()
  socket.ping('now')
  const [data] = (await once(socket, 'pong')) as [Buffer]
  expect(data.toString()).toBe('now')
  // A timer may fire a millisecond early.
  expect(performance.now() - sentAt).toBeGreaterThan(48)
  socket.terminate()
})

test('[EL44] a client that disconnects after goAway clears the timer', async () => {
  await using server = await startLive({
    respond: replies({ bye: [{ type: 'go-away', timeLeftMs: 3_600_000 }, say('Soon.')] }),
  })
  await using client = await connect(server)
  client.say('bye')
  expect(textOf(await client.until(turnComplete))).toBe('Soon.')
  client.session.close()
  expect(await server.live.sessions[0]?.ended).toMatchObject({ code: 1005 })
})

test.each<[string, Action, { code: number; reason: string }]>([
  ['close 1011', { type: 'close', code: 1011, reason: 'down' }, { code: 1011, reason: 'down' }],
  ['close 4001', { type: 'close', code: 4001, reason: '' }, { code: 4001, reason: '' }],
  ['close 1006', { type: 'close', code: 1006, reason: '' }, { code: 1006, reason: '' }],
  ['drop', { type: 'drop' }, { code: 1006, reason: '' }],
  ['fail 400', { type: 'fail', status: 400, message: 'no' }, { code: 1007, reason: 'no' }],
  ['fail 403', { type: 'fail', status: 403, message: 'no' }, { code: 1008, reason: 'no' }],
  ['fail 503', { type: 'fail', status: 503, message: 'busy' }, { code: 1011, reason: 'busy' }],
])('[EL45] %s in a script ends the connection', async (_name, action, closing) => {
  await using server = await startLive({
    respond: replies({ go: [say('Well '), action, say('never said')] }),
  })
  await using client = await connect(server)
  client.say('go')
  await client.until((message) => textOf([message]) === 'Well ')
  expect(await client.closed).toEqual(closing)
  const [session] = server.live.sessions
  expect(session?.history.at(-1)?.role).toBe('user')
  expect(JSON.stringify(session?.sent)).not.toContain('never')
})

test('[EL45] a test can end the connection', async () => {
  await using server = await startLive()
  await using first = await connect(server)
  server.live.sessions[0]?.close(1012, 'restart')
  expect(await first.closed).toEqual({ code: 1012, reason: 'restart' })
  expect(await server.live.sessions[0]?.ended).toEqual({ code: 1012, reason: 'restart' })
  expect(server.live.sessions[0]?.closed).toEqual({ code: 1012, reason: 'restart' })
  await using second = await connect(server)
  server.live.sessions[1]?.drop()
  expect(await second.closed).toMatchObject({ code: 1006 })
})

test('[EL45] nothing is read after the server has closed', async () => {
  await using server = await startLive()
  const { send, closed } = await connectRaw(server)
  send(TEXT_SETUP)
  send({ nonsense: 1 })
  send({ realtimeInput: { text: 'too late' } })
  await closed
  expect(server.prompts).toEqual([])
  expect(server.live.sessions[0]?.received).toHaveLength(2)
})

test('[EL46] if no responder replies, the connection closes with 1011', async () => {
  await using server = await startLive({ respond: () => undefined })
  await using client = await connect(server)
  client.say('hi')
  expect(formatClose(await client.closed)).toMatch(/^1011 .*no responder replied to this prompt/)
})

test('[EL47] a turn is aborted when the connection ends', async () => {
  await using server = await startLive({
    respond: replies({ story: [say('Once'), wait('on'), say('x')] }),
  })
  const signals: AbortSignal[] = []
  const { gates } = server.core
  const waitAtGate = gates.wait.bind(gates)
  Object.assign(gates, {
    wait(name: string, signal: AbortSignal) {
      signals.push(signal)
      return waitAtGate(name, signal)
    },
  })
  await using client = await connect(server)
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once')
  const [session] = server.live.sessions
  client.session.close()
  await session?.ended
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  expect(session?.speaking).toBe(false)
  const sent = session?.sent.length
  server.core.gates.release('on')
  expect(session?.sent.length).toBe(sent)
})

const MAX_BUFFERED_BYTES = 1_000
const FRAME_BYTES = 100_000

/** Opens a connection whose client does not read, and sends until the server has to wait. Returns both ends and that wait. */
async function openStalledConnection() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const client = new WebSocket(`ws://127.0.0.1:${portOf(server)}`)
  const [socket, request] = (await once(server, 'connection')) as [WebSocket, IncomingMessage]
  await once(client, 'open')
  const connection = createConnection(socket, request.socket, {
    frames: 'binary',
    keepFrames: 1,
    recordAudio: false,
    maxBufferedBytes: MAX_BUFFERED_BYTES,
  })
  client.pause()
  const text = 'x'.repeat(FRAME_BYTES)
  let drained = connection.drained()
  for (; !drained; drained = connection.drained()) connection.send({ text })
  return { client, socket, connection, drained, [Symbol.dispose]: () => server.close() }
}

test('[EL48] the model waits for a client that does not read', async () => {
  using stalled = await openStalledConnection()
  const { client, socket, connection, drained } = stalled
  // At most one frame over the limit is buffered, however much the kernel has accepted.
  expect(socket.bufferedAmount).toBeLessThan(MAX_BUFFERED_BYTES + 1.1 * FRAME_BYTES)
  client.resume()
  await drained
  expect(connection.drained()).toBeUndefined()
  client.terminate()
})

test('[EL48] the wait for a client ends when its connection ends', async () => {
  using stalled = await openStalledConnection()
  stalled.socket.terminate()
  await stalled.drained
  expect(await stalled.connection.ended).toMatchObject({ code: 1006 })
  expect(stalled.connection.drained()).toBeUndefined()
})

test('[EL48] a slow client receives everything', async () => {
  const image: Action = { type: 'image', mimeType: 'image/png', data: 'A'.repeat(200_000) }
  const actions = Array.from({ length: 100 }, () => image)
  await using server = await startLive({
    maxBufferedBytes: MAX_BUFFERED_BYTES,
    respond: replies({ draw: actions }),
  })
  await using client = await connect(server)
  client.say('draw')
  const messages = await client.until(turnComplete)
  expect(kinds(messages).filter((kind) => kind === 'modelTurn')).toHaveLength(100)
})

test('[EL49] a frame that is too large closes the connection with 1009', async () => {
  await using server = await startLive({ maxFrameBytes: 1000 })
  const { send, closed } = await connectRaw(server)
  send(TEXT_SETUP)
  send({ realtimeInput: { text: 'x'.repeat(1000) } })
  expect(await closed).toMatchObject({ code: 1009 })
})

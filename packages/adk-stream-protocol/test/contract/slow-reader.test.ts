import { once } from 'node:events'
import { setInterval as ticks } from 'node:timers/promises'
import { type AppendEventRequest, type Event, InMemorySessionService } from '@google/adk'
import { expect, test } from 'vitest'

import { assistant, defer, FloodModel } from '../support/agents.ts'
import { messageBody, sendRaw } from '../support/raw-client.ts'
import { serve, type ServeOptions } from '../support/serve.ts'
import { readFrames } from '../support/wire-rules.ts'

const MEBI = 1_048_576
const PIECE = 1_024
const LARGE_PIECE = 8 * PIECE

/** More than the kernel buffers of a connection hold, in large pieces that are created quickly. */
const LONG_REPLY = { pieces: 320, length: 65_536 }

/** The test does not keep what is sent, so that only the memory of the server is measured. */
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

test('[TU3] a reader that does not read pauses the model', async () => {
  const model = new FloodModel({ pieces: 7_500, length: LARGE_PIECE })
  await using server = await serve(flooded(model))
  const before = process.memoryUsage().heapUsed
  using client = await sendRaw(`${server.url}/stream`, { body: messageBody('Go') })
  const produced = await model.paused()
  // The kernel buffers and a little of our own. Otherwise it would be 60 MiB.
  expect(produced).toBeGreaterThan(0)
  expect(produced).toBeLessThan(3_750)
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * MEBI)
  // The model continues when the client reads.
  client.socket.resume()
  while (model.produced < produced + 125) await new Promise(setImmediate)
  client.socket.destroy()
  await model.aborted
})

test('[TU795] a chunk is sent before the next event is stored', async () => {
  const unsent: (number | undefined)[] = []
  class WatchedSessions extends InMemorySessionService {
    override appendEvent(request: AppendEventRequest): Promise<Event> {
      const { author, partial } = request.event
      if (author !== 'user' && !partial) unsent.push(server.responses[0]?.socket?.writableLength)
      return super.appendEvent(request)
    }
  }
  const model = new FloodModel({ pieces: 1, length: 10, atOnce: true, hold: Promise.resolve() })
  await using server = await serve(flooded(model, { sessionService: new WatchedSessions() }))
  const response = await server.browser().post('/stream', messageBody('Go'))
  expect(readFrames(await response.text()).done).toBe(true)
  expect(unsent).toEqual([0])
})

test('[TU5] a client that disconnects stops the model', async () => {
  const model = new FloodModel({ pieces: 1_000_000, length: 10 })
  await using server = await serve(flooded(model))
  using client = await sendRaw(`${server.url}/stream`, { body: messageBody('Go') })
  client.socket.resume()
  while (model.produced < 100) await new Promise(setImmediate)
  client.socket.destroy()
  await model.aborted
  const produced = await model.paused()
  expect(produced).toBeLessThan(1_000_000)
})

test('[TU4] a stalled reader is disconnected after the stall time, and can resume', async () => {
  const hold = defer()
  const model = new FloodModel({ ...LONG_REPLY, hold: hold.promise })
  await using server = await serve(
    flooded(model, {
      disconnectGraceMs: 60_000,
      limits: { stallTimeoutMs: 500, maxReplay: 64 * MEBI },
    }),
  )
  using stalled = await sendRaw(`${server.url}/stream`, { body: messageBody('Go') })
  await model.paused()
  const [response] = server.responses
  if (response?.destroyed === false) await once(response, 'close')
  expect(await stalled.drain()).not.toContain('[DONE]')
  const resumed = await server.browser().get('/stream/chat-1/stream')
  expect(resumed.status).toBe(200)
  hold.resolve()
  const { chunks, done } = readFrames(await resumed.text())
  expect(done).toBe(true)
  const length = chunks.reduce((sum, { delta }) => sum + String(delta ?? '').length, 0)
  expect(length).toBe(LONG_REPLY.pieces * LONG_REPLY.length + 1)
})

test('[TU3] a stalled reader does not delay another one, and is disconnected when it is too far behind', async () => {
  const hold = defer()
  const model = new FloodModel({ ...LONG_REPLY, hold: hold.promise })
  await using server = await serve(
    flooded(model, { limits: { maxReplay: 64 * MEBI, stallTimeoutMs: 60_000, maxLag: MEBI } }),
  )
  using stalled = await sendRaw(`${server.url}/stream`, { body: messageBody('Go') })
  await model.paused()
  const second = await server.browser().get('/stream/chat-1/stream')
  hold.resolve()
  const { chunks, done } = readFrames(await second.text())
  expect(done).toBe(true)
  const length = chunks.reduce((sum, { delta }) => sum + String(delta ?? '').length, 0)
  expect(length).toBe(LONG_REPLY.pieces * LONG_REPLY.length + 1)
  expect(server.responses[0]?.destroyed).toBe(true)
  expect(await stalled.drain()).not.toContain('[DONE]')
})

test('[TU1] a turn too long to be replayed continues for its reader, and cannot be resumed', async () => {
  const pieces = 375
  const hold = defer()
  const model = new FloodModel({ pieces, length: LARGE_PIECE, hold: hold.promise })
  await using server = await serve(flooded(model, { limits: { maxReplay: MEBI } }))
  const browser = server.browser()
  const response = await browser.say('Go')
  const body = response.text()
  while (model.produced < pieces) await new Promise(setImmediate)
  expect((await browser.get('/stream/chat-1/stream')).status).toBe(204)
  hold.resolve()
  const { chunks, done } = readFrames(await body)
  expect(done).toBe(true)
  const length = chunks.reduce((sum, { delta }) => sum + String(delta ?? '').length, 0)
  expect(length).toBe(pieces * LARGE_PIECE + 1)
})

test('[SE5] keep-alives after the end of an unread reply cause no error', async () => {
  // The model ends when the socket is full and the response still accepts data: the end of the reply then waits in the response.
  const model = new FloodModel({
    pieces: 1_000_000,
    length: PIECE,
    enough: () => (server.responses[0]?.writableLength ?? 0) > 3 * PIECE,
  })
  const keepAliveMs = 5
  await using server = await serve(flooded(model, { limits: { keepAliveMs } }))
  using client = await sendRaw(`${server.url}/stream`, { body: messageBody('Go') })
  while (server.responses[0]?.writableEnded !== true) await new Promise(setImmediate)
  const faults: unknown[] = []
  server.responses[0].on('error', (fault) => faults.push(fault))
  expect(server.responses[0].writableFinished).toBe(false)
  // With each of these ticks a comment is due. A late one is an error on the response, which would end the process.
  let due = 0
  for await (const _ of ticks(keepAliveMs)) {
    due += 1
    if (due === 5) break
  }
  expect(faults).toEqual([])
  client.socket.destroy()
})

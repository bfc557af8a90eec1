import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'

import { expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'

import { portOf } from '../../../test/support/listen.ts'
import { createConnection } from '../src/live/connection.ts'
import type { Action } from '../src/responders/responder.ts'
import { connect, kinds, replies, startLive, turnComplete } from './live-server.ts'

/** Opens a connection whose client does not read. Returns both ends, and the first wait of the server. */
async function stall() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const client = new WebSocket(`ws://127.0.0.1:${portOf(server)}`)
  const [socket, request] = (await once(server, 'connection')) as [WebSocket, IncomingMessage]
  await once(client, 'open')
  const settings = { frames: 'binary', keepFrames: 1, recordAudio: false } as const
  const connection = createConnection(socket, request.socket, {
    ...settings,
    maxBufferedBytes: 1000,
  })
  client.pause()
  const text = 'x'.repeat(100_000)
  let lag = connection.drained()
  for (; !lag; lag = connection.drained()) connection.send({ text })
  return { client, socket, connection, lag, [Symbol.dispose]: () => server.close() }
}

test('[EL48] the model waits for a client that does not read', async () => {
  using stalled = await stall()
  const { client, socket, connection, lag } = stalled
  // At most one frame over the limit is buffered, however much the kernel has accepted.
  expect(socket.bufferedAmount).toBeLessThan(1000 + 110_000)
  client.resume()
  await lag
  expect(connection.drained()).toBeUndefined()
  client.terminate()
})

test('[EL48] the wait ends with the connection', async () => {
  using stalled = await stall()
  stalled.socket.terminate()
  await stalled.lag
  expect(await stalled.connection.ended).toMatchObject({ code: 1006 })
  expect(stalled.connection.drained()).toBeUndefined()
})

test('[EL48] a slow client receives everything', async () => {
  const image: Action = { type: 'image', mimeType: 'image/png', data: 'A'.repeat(200_000) }
  const actions = Array.from({ length: 100 }, () => image)
  await using server = await startLive({
    maxBufferedBytes: 1000,
    respond: replies({ draw: actions }),
  })
  await using client = await connect(server)
  client.say('draw')
  const messages = await client.until(turnComplete)
  expect(kinds(messages).filter((kind) => kind === 'modelTurn')).toHaveLength(100)
})

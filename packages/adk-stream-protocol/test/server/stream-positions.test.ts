import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Chunk } from '../../src/protocol/chunk.ts'
import { joinLive, openLiveTestBridge } from '../live/support/live-test-bridge.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { assistant, weather } from '../support/agents.ts'
import { joinDeltas, PositionClient } from '../support/position-client.ts'
import { serve, type TestServer } from '../support/serve.ts'
import { SseReader } from '../support/sse-reader.ts'

let server: TestServer
beforeAll(async () => {
  server = await serve({
    authenticate: () => ({ id: 'hanako' }),
    agent: (model) => assistant(model, { tools: [weather] }),
    disconnectGraceMs: 60_000,
    // A stream that continues another one has no `start`.
    recorded: false,
  })
})
afterAll(() => server[Symbol.asyncDispose]())

let count = 0
/** Starts a turn that waits. Returns its chat when everything before the gate can be read. */
const begin = async (): Promise<{ chatId: string; gate: string }> => {
  count += 1
  const [chatId, gate] = [`chat-${count}`, `gate-${count}`]
  const reader = new SseReader(await server.browser().say(script(gate), chatId, WITH_POSITIONS))
  await reader.until(AT_GATE)
  await reader.cancel()
  return { chatId, gate }
}
const resume = (chatId: string, query: string): Promise<Response> =>
  server.browser().get(`/stream/${chatId}/stream${query}`)

test('[PO6] a chunk has a position if its entry differs from that of the chunk before it', async () => {
  count += 1
  server.emulator.release(`gate-${count}`)
  const said = await server.browser().say(script(`gate-${count}`), `chat-${count}`, WITH_POSITIONS)
  const events = (await said.text())
    .split('\n\n')
    .filter((event) => event.includes('data: {"type"'))
  const turnId = /^id: (\S+):0\n/.exec(events[0] ?? '')?.[1]
  let entry = -1
  let run = ''
  for (const event of events) {
    const delta = /data: \{"type":"(?:text|reasoning)-delta","id":"([^"]+)"/.exec(event)?.[1] ?? ''
    if (delta === '' || delta !== run) entry += 1
    const id = delta !== '' && delta === run ? '' : `id: ${turnId}:${entry}\n`
    expect(event.startsWith(`${id}data: {"type":`)).toBe(true)
    run = delta
  }
  expect(entry).toBeGreaterThan(8)
  expect(events.length).toBeGreaterThan(entry + 8)
})

test('[RQ120] `positions` is no context of the application', async () => {
  const bodies: unknown[] = []
  await using other = await serve({
    authenticate: () => ({ id: 'hanako' }),
    recorded: false,
    context: {
      toState: ({ body }) => {
        bodies.push(body)
        return {}
      },
    },
  })
  const body = { positions: true, locale: 'ja' }
  await (await other.browser().say('[[say One.]]', 'chat-1', body)).text()
  await using socket = await SocketClient.open(other.url)
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: '[[say Two.]]' }] }
  socket.send({ type: 'send', requestId: 'r1', id: 'chat-2', messages: [message], body })
  await socket.nextOf('end', 'r1')
  expect(bodies).toEqual([{ locale: 'ja' }, { locale: 'ja' }])
  expect(socket.of('r1')[1]).toHaveProperty('position')
})

test('[PO9] the `turn` frame has the id of the turn', async () => {
  await using testBridge = await openLiveTestBridge()
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.send({ type: 'text', id: 'chat-1', text: '[[say One.]] [[wait gate]] [[say Two.]]' })
  const { requestId, turn } = await client.nextOf('turn')
  await client.untilText('One.', requestId)
  client.send({ type: 'resume', requestId: 'r1', id: 'chat-1', positions: true })
  const { position } = await client.nextOf('chunk', 'r1')
  expect(position).toBe(`${String(turn)}:0`)
  testBridge.emulator.release('gate')
  await client.nextOf('end', 'r1')
})

test('[PO7] over SSE, cut at any chunks', async () => {
  const property = fc.asyncProperty(CUTS, async (cuts) => {
    const { chatId, gate } = await begin()
    const whole = new SseReader(await resume(chatId, '?positions=true'))
    const client = new PositionClient()
    for (const cut of cuts) {
      const after = client.position === undefined ? '' : `?after=${client.position}`
      const reader = new SseReader(await resume(chatId, after || '?positions=true'), client)
      await reader.untilCount(client.chunks.length + cut, AT_GATE)
      await reader.cancel()
    }
    const rest = new SseReader(await resume(chatId, `?after=${client.position}`), client)
    server.emulator.release(gate)
    await Promise.all([rest.done, whole.done])
    expect(joinDeltas(client.chunks)).toEqual(joinDeltas(whole.client.chunks))
  })
  await fc.assert(property, { numRuns: 6 })
})

test('[PO7] over a socket, cut at any chunks', async () => {
  const property = fc.asyncProperty(CUTS, async (cuts) => {
    const { chatId, gate } = await begin()
    const whole = new SseReader(await resume(chatId, '?positions=true'))
    const client = new PositionClient()
    for (const cut of cuts) {
      await using socket = await SocketClient.open(server.url)
      const from = client.position === undefined ? { positions: true } : { after: client.position }
      socket.send({ type: 'resume', requestId: 'r1', id: chatId, ...from })
      await socket.nextOf('start', 'r1')
      await socket.next(
        () => socket.chunks().length >= cut || `${client.text}${socket.text()}`.endsWith(AT_GATE),
      )
      takeFrames(client, socket)
    }
    await using socket = await SocketClient.open(server.url)
    socket.send({ type: 'resume', requestId: 'r1', id: chatId, after: client.position })
    await socket.nextOf('start', 'r1')
    server.emulator.release(gate)
    await Promise.all([socket.nextOf('end', 'r1'), whole.done])
    takeFrames(client, socket)
    expect(joinDeltas(client.chunks)).toEqual(joinDeltas(whole.client.chunks))
  })
  await fc.assert(property, { numRuns: 6 })
})

test('[PO5] a client that does not ask receives the same bytes without positions', async () => {
  const { chatId, gate } = await begin()
  const read = async (query: string) => new SseReader(await resume(chatId, query))
  const [plain, asked, confirmation, asking] = await Promise.all(
    ['', '?positions=true', '?dialect=confirmation', '?dialect=confirmation&after=x:1'].map(read),
  )
  await using socket = await SocketClient.open(server.url)
  for (const positions of [false, true])
    socket.send({ type: 'resume', requestId: String(positions), id: chatId, positions })
  await socket.nextOf('start', 'true')
  server.emulator.release(gate)
  const bodies = await Promise.all(
    [plain, asked, confirmation, asking].map(async (reader) => {
      await reader?.done
      return reader?.body ?? ''
    }),
  )
  await Promise.all(['false', 'true'].map((requestId) => socket.nextOf('end', requestId)))
  expect(bodies[0]).not.toMatch(/^(?!data: |: |$)/m)
  const removed = bodies[1]?.replaceAll(
    /^(?:: keep-alive \d+\n\n|id: .*\n|event: position\ndata: .*\n\n)/gm,
    '',
  )
  expect(removed).not.toBe(bodies[1])
  expect(removed).toBe(bodies[0])
  // The dialects of the Python clients have no positions.
  expect(bodies[2]).not.toContain('id: ')
  expect(bodies[3]).toBe(bodies[2])
  const frames = (requestId: string) =>
    socket.of(requestId).map((frame) => ({ ...frame, requestId: 'r1' }))
  expect(frames('false').some((frame) => 'position' in frame)).toBe(false)
  expect(frames('true').some((frame) => 'position' in frame)).toBe(true)
  expect(frames('true').map((frame) => ({ ...frame, position: undefined }))).toEqual(
    frames('false').map((frame) => ({ ...frame, position: undefined })),
  )
})

test('[PO8] `after` a turn that is gone, or a position that is none, returns nothing and disturbs nothing', async () => {
  const earlier = await begin()
  const read = new SseReader(await resume(earlier.chatId, '?positions=true'))
  server.emulator.release(earlier.gate)
  await read.done
  const { chatId, gate } = await begin()
  const current = new SseReader(await resume(chatId, '?positions=true'))
  await current.until(AT_GATE)
  const turnId = current.client.position?.split(':')[0] ?? ''
  const gone = [
    read.client.position ?? '',
    '',
    'x',
    ':',
    turnId,
    `${turnId}:`,
    `${turnId}:-1`,
    `${turnId}:1e3`,
    `${turnId}:0:1`,
    `${turnId}:999999`,
    `${turnId}:1:2:3`,
    `${turnId}:99999999999999999999`,
    `${turnId}:0\u0000`,
    '日本',
    'x'.repeat(200),
  ]
  await using socket = await SocketClient.open(server.url)
  for (const [index, after] of gone.entries()) {
    const response = await resume(chatId, `?after=${encodeURIComponent(after)}`)
    expect([after, response.status]).toEqual([after, 204])
    const requestId = `r${index}`
    socket.send({ type: 'resume', requestId, id: chatId, after })
    await socket.nextOf('no-active', requestId)
  }
  expect((await resume(earlier.chatId, `?after=${read.client.position}`)).status).toBe(204)
  expect((await resume(chatId, `?after=${'x'.repeat(201)}`)).status).toBe(400)
  for (const [index, after] of ['x'.repeat(201), 7, null, {}, ['x']].entries()) {
    const requestId = `bad-${index}`
    socket.send({ type: 'resume', requestId, id: chatId, after })
    expect(await socket.nextOf('error', requestId)).toMatchObject({ code: 'bad-request' })
  }
  server.emulator.release(gate)
  await current.done
  expect(current.body).toContain('degrees')
})

const WITH_POSITIONS = { positions: true }
const CUTS = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 })

function takeFrames(client: PositionClient, socket: SocketClient): void {
  for (const { type, chunk, position } of socket.of('r1'))
    // The server sends chunks in these frames.
    if (type === 'chunk') client.take(chunk as Chunk, position as string | undefined)
}

/** The text before a turn waits. */
const AT_GATE = '晴れです。'

function script(gate: string): string {
  return `[[say 調べます。😀 One moment.]][[call get_weather {"place":"東京"}]][[then]][[say ${AT_GATE}]][[wait ${gate}]][[say It is 18 degrees.]]`
}

import { expect, test } from 'vitest'

import { ClientFrame } from '../../src/protocol/client-frame.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { StoreError } from '../../src/store/store-error.ts'
import type { Store } from '../../src/store/store.ts'
import { assistant, defer, weather } from '../support/agents.ts'
import { findLeaks } from '../support/leaks.ts'
import { serve, type ServeOptions } from '../support/serve.ts'
import { readFrames } from '../support/wire-rules.ts'
import { SocketClient, textOfChunks } from './support/socket-client.ts'

const hanako: ServeOptions = {
  authenticate: () => ({ id: 'hanako' }),
  agent: (model) => assistant(model, { tools: [weather] }),
}

const SCRIPT =
  '[[say 調べます。]][[call get_weather {"place":"東京"}]][[then]][[say It is]][[wait gate]][[say 18 degrees.]]'

test('[WS2] a reply is `start`, chunks numbered from 0 and `end`, with the chunks of the HTTP stream', async () => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url)
  server.emulator.release('gate')
  client.say(SCRIPT)
  await client.nextOf('end', 'r1')
  const types = client.of('r1').map(({ type }) => type)
  expect(types[0]).toBe('start')
  expect(types.at(-1)).toBe('end')
  expect(new Set(types.slice(1, -1))).toEqual(new Set(['chunk']))
  expect(await client.faults()).toEqual([])
  const { chunks } = readFrames(await (await server.browser().say(SCRIPT, 'chat-2')).text())
  expect(client.chunks().map(({ type }) => type)).toEqual(chunks.map(({ type }) => type))
  expect(client.text()).toBe(textOfChunks(chunks))
})

test('[WS2] the chunks of each reply on a socket are numbered from 0', async () => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url)
  const names = Array.from({ length: 8 }, (_, index) => `r${index}`)
  for (const name of names) client.say(`[[say I am ${name}.]]`, name, `chat-${name}`)
  await Promise.all(names.map((name) => client.nextOf('end', name)))
  for (const name of names) {
    expect(client.text(name)).toBe(`I am ${name}.`)
    expect(await client.faults(name)).toEqual([])
  }
})

test('[WS2] a requestId in use is rejected, and the request that has it continues', async () => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url)
  client.say('[[say One.]][[wait gate]][[say Two.]]')
  await client.untilText('One.')
  client.say('[[say Other.]]', 'r1', 'chat-2')
  expect(await client.nextOf('refused')).toMatchObject({ frame: 'send', code: 'bad-request' })
  server.emulator.release('gate')
  await client.nextOf('end', 'r1')
  expect(client.text()).toBe('One.Two.')
})

test('[WS5] a turn that is interrupted at any chunk is resumed completely', async () => {
  await using server = await serve({ ...hanako, disconnectGraceMs: 60_000 })
  await using first = await SocketClient.open(server.url)
  first.say(SCRIPT)
  await first.untilText('調べます。It is')
  first.socket.terminate()
  await using whole = await SocketClient.open(server.url)
  whole.resume('whole')
  await whole.untilText('調べます。It is', 'whole')
  const { length } = whole.chunks('whole')
  expect(length).toBeGreaterThan(5)
  for (let cut = 0; cut < length; cut += 1) {
    await using client = await SocketClient.open(server.url)
    client.resume('again')
    await client.next(() => client.chunks('again').length > cut)
    client.socket.terminate()
  }
  await using last = await SocketClient.open(server.url)
  last.resume('last')
  await last.nextOf('start', 'last')
  server.emulator.release('gate')
  await last.nextOf('end', 'last')
  expect(last.text('last')).toBe('調べます。It is18 degrees.')
  expect(await last.faults('last')).toEqual([])
  last.resume('later')
  await last.nextOf('no-active', 'later')
})

test('[WS5] a socket that is lost during a reply detaches its reader: without grace time the model stops', async () => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url)
  client.say('[[say One.]][[wait never]]')
  await client.untilText('One.')
  const request = await server.emulator.nextRequest()
  client.socket.terminate()
  await request.done
  expect(request.aborted).toBe(true)
})

test('[WS5] a socket that is lost before its turn has started leaves no running turn', async () => {
  const opened = defer<Store>()
  await using store = await openSqliteStore({ path: ':memory:' })
  await using server = await serve({ ...hanako, store: opened.promise })
  await using client = await SocketClient.open(server.url)
  client.say('[[say One.]][[wait never]]')
  await client.sync()
  client.socket.close()
  await client.closed
  await using other = await SocketClient.open(server.url)
  await other.sync()
  opened.resolve(store)
  other.say('[[say Two.]]', 'r2')
  await other.nextOf('end', 'r2')
  expect(other.text('r2')).toBe('Two.')
})

test('[WS4] `abort` by a client that only resumed a reply stops it only if no other client reads it', async () => {
  await using server = await serve({ ...hanako, disconnectGraceMs: 60_000 })
  await using first = await SocketClient.open(server.url)
  await using second = await SocketClient.open(server.url)
  first.say('[[say One.]][[wait gate]][[say Two.]]')
  await first.untilText('One.')
  second.resume('joined')
  await second.untilText('One.', 'joined')
  second.send({ type: 'abort', requestId: 'joined' })
  await second.sync()
  server.emulator.release('gate')
  await first.nextOf('end', 'r1')
  expect(first.text()).toBe('One.Two.')

  first.say('[[say Three.]][[wait never]]', 'r2')
  await first.untilText('Three.', 'r2')
  second.resume('again')
  await second.untilText('Three.', 'again')
  const request = await server.emulator.nextRequest((seen) =>
    JSON.stringify(seen.body).includes('Three'),
  )
  first.socket.close()
  await first.closed
  // The server has then noticed the end of the other connection too.
  await second.sync()
  await second.sync()
  second.send({ type: 'abort', requestId: 'again' })
  await request.done
  expect(request.aborted).toBe(true)
})

test('[WS4] with `stop`, a client that has only joined a reply stops it for all readers', async () => {
  await using server = await serve({ ...hanako, disconnectGraceMs: 60_000 })
  await using first = await SocketClient.open(server.url)
  await using second = await SocketClient.open(server.url)
  for (const [request, text] of [
    ['r1', 'One.'],
    ['r2', 'Two.'],
  ] as const) {
    first.say(`[[say ${text}]][[wait never]]`, request)
    await first.untilText(text, request)
    second.resume(`joined-${request}`)
    // The second time, the frame arrives while the turn is still being looked up.
    if (request === 'r1') await second.untilText(text, `joined-${request}`)
    second.send({ type: 'abort', requestId: `joined-${request}`, stop: true })
    expect(await first.nextOf('end', request)).toMatchObject({ type: 'end' })
  }
})

test('[WS4] an abort before the turn has started stops it; a late one is ignored', async () => {
  await using server = await serve({ ...hanako, disconnectGraceMs: 60_000 })
  await using client = await SocketClient.open(server.url)
  client.say('[[say One.]][[wait never]]')
  client.send({ type: 'abort', requestId: 'r1' })
  client.send({ type: 'abort', requestId: 'r1' })
  client.send({ type: 'abort', requestId: 'nobody' })
  await client.sync()
  // The chat is unlocked: no turn runs.
  client.say('[[say Two.]]', 'r2')
  await client.nextOf('end', 'r2')
  expect(client.text('r2')).toBe('Two.')
  expect(client.of('nobody')).toEqual([])
})

test('[WS2] the requestId of a refused request can be used again', async () => {
  const store = Promise.reject(new StoreError('unavailable', 'The database is down.'))
  store.catch(() => undefined)
  await using server = await serve({ ...hanako, store })
  await using client = await SocketClient.open(server.url)
  client.resume('r1')
  expect(await client.nextOf('error', 'r1')).toMatchObject({ code: 'unavailable' })
  client.resume('r1')
  await client.sync()
  expect(client.frames.filter(({ type }) => type === 'refused')).toEqual([])
})

test('[WS6] frames that the AI SDK does not know have an empty requestId, so that it ignores them', async () => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url, { protocols: 'adk-stream.v1' })
  client.send({ type: 'ping' })
  client.send({ type: 'watch', id: 'chat-1' })
  await client.nextOf('refused')
  expect(client.frames.map(({ type, requestId }) => [type, requestId])).toEqual([
    ['hello', ''],
    ['pong', ''],
    ['refused', ''],
  ])
  expect(client.frames[0]).toMatchObject({
    protocol: 'adk-stream.v1',
    limits: { maxFrameBytes: 8_388_608, maxFramesPerSecond: 100 },
  })
})

test('[WS6] a client without our subprotocol gets no `hello`', async () => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url)
  await client.sync()
  expect(client.frames.map(({ type }) => type)).toEqual(['pong'])
})

test('[WS10] a ping is answered with its nonce', async () => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url)
  client.send({ type: 'ping', nonce: 'abc' })
  expect(await client.nextOf('pong')).toEqual({ type: 'pong', nonce: 'abc', requestId: '' })
})

test('[WS11] without live sessions, each frame for a live session is rejected with its type', async () => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url)
  const id = 'chat-1'
  const frames = [
    { type: 'text', id, text: 'Also this.' },
    { type: 'audio', id, data: 'AAAA', mimeType: 'audio/pcm;rate=16000' },
    { type: 'audio-end', id },
    { type: 'image', id, data: 'AAAA', mimeType: 'image/jpeg' },
    { type: 'activity', id, state: 'start' },
    { type: 'interrupt', id },
    { type: 'watch', id, audio: 'binary' },
  ]
  for (const frame of frames) client.send(frame)
  client.socket.send(Buffer.alloc(640), { binary: true })
  await client.next(({ frame }) => frame === 'binary')
  const refused = client.frames.filter(({ type }) => type === 'refused')
  expect(refused.map(({ frame }) => frame)).toEqual([...frames.map(({ type }) => type), 'binary'])
  expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(['not-live']))
})

test.each([
  { name: 'text that is not JSON', text: '{"type":', frame: 'unknown', code: 'malformed-json' },
  { name: 'a list', text: '[1]', frame: 'unknown', code: 'bad-request' },
  { name: 'null', text: 'null', frame: 'unknown', code: 'bad-request' },
  {
    name: 'an object without a type',
    text: '{"id":"chat-1"}',
    frame: 'unknown',
    code: 'bad-request',
  },
  { name: 'an unknown type', text: '{"type":"explode"}', frame: 'explode', code: 'bad-request' },
  {
    name: 'a type that is a property of every object',
    text: '{"type":"constructor"}',
    frame: 'constructor',
    code: 'bad-request',
  },
  {
    name: 'JSON with 65 levels',
    text: `{"type":"ping","x":${'['.repeat(65)}${']'.repeat(65)}}`,
    frame: 'unknown',
    code: 'malformed-json',
  },
  {
    name: 'JSON with 100,000 levels',
    text: '['.repeat(100_000),
    frame: 'unknown',
    code: 'malformed-json',
  },
  {
    name: 'a chat id with a slash',
    text: '{"type":"interrupt","id":"a/b"}',
    frame: 'interrupt',
    code: 'bad-request',
  },
  {
    name: 'audio that is not base64',
    text: '{"type":"audio","id":"c","data":"!","mimeType":"a"}',
    frame: 'audio',
    code: 'bad-request',
  },
  {
    name: 'a decision that is not a boolean',
    text: '{"type":"decide","decisionId":"d","id":"c","approvalId":"a","approved":"yes"}',
    frame: 'decide',
    code: 'bad-request',
  },
  {
    name: 'a result with an output and an error',
    text: '{"type":"tool-output","outputId":"o","id":"c","toolCallId":"t","output":1,"errorText":"e"}',
    frame: 'tool-output',
    code: 'bad-request',
  },
  {
    name: 'a result without output and error',
    text: '{"type":"tool-output","outputId":"o","id":"c","toolCallId":"t"}',
    frame: 'tool-output',
    code: 'bad-request',
  },
])(
  '[WS12] $name is rejected with the type of the frame, and turns continue',
  async ({ text, frame, code }) => {
    await using server = await serve(hanako)
    await using client = await SocketClient.open(server.url)
    client.say('[[say One.]][[wait gate]][[say Two.]]')
    await client.untilText('One.')
    client.send(text)
    const refused = await client.nextOf('refused')
    expect(refused).toMatchObject({ frame, code })
    expect(findLeaks(JSON.stringify(refused))).toEqual([])
    server.emulator.release('gate')
    await client.nextOf('end', 'r1')
    expect(client.text()).toBe('One.Two.')
    expect(server.errors).toEqual([])
  },
)

test.each([
  ['no messages', { type: 'send', id: 'chat-1' }],
  ['no user message', { type: 'send', id: 'chat-1', messages: [] }],
  ['a wrong id', { type: 'resume', id: '../x' }],
  ['an unknown dialect', { type: 'resume', id: 'chat-1', body: { dialect: 'unknown' } }],
])('[WS12] a request with %s fails, and other requests continue', async (_name, frame) => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url)
  client.send({ ...frame, requestId: 'bad' })
  expect(await client.nextOf('error', 'bad')).toMatchObject({ code: 'bad-request' })
  client.say('[[say Fine.]]')
  await client.nextOf('end', 'r1')
  expect(client.text()).toBe('Fine.')
})

test('[WS12] no frame changes Object.prototype', () => {
  const frame = JSON.parse('{"type":"ping","__proto__":{"polluted":1}}') as unknown
  expect(ClientFrame.parse(frame)).toEqual({ type: 'ping' })
  expect('polluted' in {}).toBe(false)
})

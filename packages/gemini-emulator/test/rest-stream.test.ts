import { createServer, connect as openSocket, type Server, type Socket } from 'node:net'

import { GoogleGenAI } from '@google/genai'
import { expect, test } from 'vitest'

import { startEmulator } from '../src/index.ts'
import {
  ask,
  collect,
  connect,
  MODEL,
  partsOf,
  post,
  stream,
  textOf,
} from './support/rest-client.ts'

const JAPANESE = '東京の天気は晴れ、気温は20度です。👨‍👩‍👧 がんばれ！'

test('[EM3] Japanese is streamed character by character', async () => {
  await using emulator = await startEmulator()
  const chunks = await stream(emulator, `[[say ${JAPANESE}]]`)
  expect(textOf(chunks)).toBe(JAPANESE)
  expect(chunks.length).toBeGreaterThan(15)
  expect(partsOf(chunks)[0]?.text).toBe('東')
})

test('[EM4] characters split by the network arrive intact', async () => {
  await using emulator = await startEmulator()
  await using proxy = await openByteProxy(emulator.port)
  const client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: proxy.url } })
  const contents = `[[say ${JAPANESE}]]`
  const chunks = await client.models.generateContentStream({ model: MODEL, contents })
  expect(textOf(await collect(chunks))).toBe(JAPANESE)
})

test('[EM5] without alt=sse the stream is one JSON array', async () => {
  await using emulator = await startEmulator()
  const { headers, text } = await post(emulator, 'streamGenerateContent', {
    contents: [{ parts: [{ text: '[[say one two]]' }] }],
  })
  expect(headers.get('content-type')).toContain('application/json')
  expect(JSON.parse(text)).toMatchObject([
    { candidates: [{ content: { parts: [{ text: 'one ' }] } }] },
    { candidates: [{ content: { parts: [{ text: 'two' }] }, finishReason: 'STOP' }] },
  ])
})

test('[EM23] an error after the first piece ends the open stream', async () => {
  await using emulator = await startEmulator()
  const chunks = await connect(emulator).models.generateContentStream({
    model: MODEL,
    contents: '[[say one two]] [[fail 503]]',
  })
  const seen: (string | undefined)[] = []
  const reading = (async () => {
    for await (const chunk of chunks) seen.push(chunk.text)
  })()
  await expect(reading).rejects.toMatchObject({ name: 'ApiError', status: 503 })
  await expect(reading).rejects.toThrow('The model is overloaded. Please try again later.')
  expect(seen).toEqual(['one ', 'two'])
  expect(emulator.requests[0]).toMatchObject({ status: 200, aborted: false })
})

test('[EM24] `drop` closes the connection', async () => {
  await using emulator = await startEmulator()
  const chunks = await connect(emulator).models.generateContentStream({
    model: MODEL,
    contents: '[[say one]] [[wait read]] [[drop]]',
  })
  // If the connection ends, fetch drops unread data, so the client reads first.
  expect(await chunks.next()).toMatchObject({ value: { text: 'one' } })
  emulator.release('read')
  await expect(chunks.next()).rejects.toThrow('terminated')
  const request = await emulator.nextRequest()
  await request.done
  expect(request).toMatchObject({ status: 200, aborted: false, chunksSent: 1 })
  await expect(ask(emulator, '[[drop]]')).rejects.toThrow('fetch failed')
})

test('[EM24] text before `drop` is delivered', async () => {
  await using emulator = await startEmulator()
  const body = JSON.stringify({ contents: [{ parts: [{ text: '[[say one two]] [[drop]]' }] }] })
  const socket = openSocket(emulator.port, '127.0.0.1').setEncoding('utf8')
  socket.write(streamRequest(body))
  let received = ''
  for await (const text of socket as AsyncIterable<string>) received += text
  expect(received).toContain('"text":"one "')
  expect(received).toContain('"text":"two"')
  // The last chunk, which would end the response properly, is missing.
  expect(received).not.toMatch(/\r\n0\r\n\r\n$/)
})

test('[EM37] a client that disconnects stops the generation', async () => {
  await using emulator = await startEmulator()
  const controller = new AbortController()
  const chunks = await connect(emulator).models.generateContentStream({
    model: MODEL,
    contents: '[[say one]] [[wait never]] [[say two]]',
    config: { abortSignal: controller.signal },
  })
  const first = await chunks.next()
  expect(first.done).toBe(false)
  controller.abort()
  await expect(chunks.next()).rejects.toThrow(/abort/i)
  const request = await emulator.nextRequest()
  await request.done
  expect(request).toMatchObject({ aborted: true, chunksSent: 1 })
  emulator.release('never')
  expect((await ask(emulator, '[[say still here]]')).text).toBe('still here')
  expect(request.chunksSent).toBe(1)
})

test('[EM37] a client that disconnects before the reply stops the generation', async () => {
  await using emulator = await startEmulator()
  const controller = new AbortController()
  const response = connect(emulator).models.generateContent({
    model: MODEL,
    contents: '[[wait never]]',
    config: { abortSignal: controller.signal },
  })
  const request = await emulator.nextRequest()
  controller.abort()
  await expect(response).rejects.toThrow(/abort/i)
  await request.done
  expect(request).toMatchObject({ aborted: true, chunksSent: 0, status: 0 })
})

test('[EM37] a client that disconnects during its request is recorded', async () => {
  await using emulator = await startEmulator()
  const socket = openSocket(emulator.port, '127.0.0.1')
  socket.write(streamRequest('{"contents": []}').slice(0, -5), () => socket.destroy())
  const request = await emulator.nextRequest()
  await request.done
  expect(request).toMatchObject({ aborted: true, chunksSent: 0, body: undefined })
})

test('[EM38] the model waits for a client that does not read', async () => {
  const pieces = Array.from({ length: 2_000 }, () => 'x'.repeat(10_000))
  await using emulator = await startEmulator({
    respond: () => [{ type: 'say', text: pieces.join(''), pieces }],
  })
  const body = JSON.stringify({ contents: [{ parts: [{ text: 'go' }] }] })
  const socket = openSocket(emulator.port, '127.0.0.1')
  socket.pause()
  socket.write(streamRequest(body))
  const request = await emulator.nextRequest()
  // A model that does not wait has sent everything before it can take another request.
  await connect(emulator).models.countTokens({ model: MODEL, contents: 'still there?' })
  expect(request.chunksSent).toBeGreaterThan(0)
  expect(request.chunksSent).toBeLessThan(pieces.length)
  socket.destroy()
  await request.done
  expect(request.aborted).toBe(true)
  expect(request.chunksSent).toBeLessThan(pieces.length)
})

test('[EM39] `wait` pauses the stream until its gate is released', async () => {
  await using emulator = await startEmulator()
  const chunks = await connect(emulator).models.generateContentStream({
    model: MODEL,
    contents: '[[say before]] [[wait gate-1]] [[say after]]',
  })
  expect(await chunks.next()).toMatchObject({ value: { text: 'before' } })
  const next = chunks.next()
  expect(emulator.requests[0]?.chunksSent).toBe(1)
  emulator.release('gate-1')
  expect(await next).toMatchObject({ value: { text: 'after' } })
})

test('[EM39] a gate released earlier stays open until reset', async () => {
  await using emulator = await startEmulator()
  emulator.release('gate-1')
  expect((await ask(emulator, '[[wait gate-1]] [[say released]]')).text).toBe('released')
  emulator.reset()
  const reply = ask(emulator, '[[wait gate-1]] [[say released again]]')
  const request = await emulator.nextRequest()
  expect(request.status).toBe(0)
  emulator.release('gate-1')
  expect((await reply).text).toBe('released again')
})

test('[EM40] `pause` and `pace` leave time between pieces', async () => {
  await using emulator = await startEmulator()
  const started = performance.now()
  await stream(emulator, '[[pace 20]] [[say one two three]] [[pause 30]]')
  const atLeastMs = 2 * 20 + 30
  // Each of the three timers may fire a millisecond early.
  expect(performance.now() - started).toBeGreaterThan(atLeastMs - 4)
})

function streamRequest(body: string): string {
  return `POST /v1beta/models/${MODEL}:streamGenerateContent?alt=sse HTTP/1.1\r\nhost: emulator\r\nx-goog-api-key: k\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

/** A proxy that sends every byte of the server in its own segment. */
async function openByteProxy(port: number) {
  const clients = new Set<Socket>()
  const server: Server = createServer((client) => {
    clients.add(client.setNoDelay(true))
    const upstream = openSocket(port, '127.0.0.1')
    client.pipe(upstream)
    const carry = async () => {
      for await (const data of upstream as AsyncIterable<Buffer>) {
        for (const byte of data) {
          await new Promise((resolve) => client.write(Buffer.of(byte), resolve))
        }
      }
    }
    // A reset by either side ends the connection. The assertion on the text shows whether that was too early.
    carry().catch(() => client.destroy())
    client.on('error', () => upstream.destroy())
    upstream.on('error', () => client.destroy())
    client.on('close', () => upstream.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('not listening')
  return {
    url: `http://127.0.0.1:${address.port}`,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const client of clients) client.destroy()
      }),
  }
}

import { connect as openSocket } from 'node:net'

import { expect, test } from 'vitest'

import { startEmulator } from '../src/index.ts'
import { ask, MODEL, stream } from './support/rest-client.ts'

test('[EM52] a request is recorded without its key', async () => {
  await using emulator = await startEmulator({ apiKey: 'secret' })
  const response = await fetch(
    `${emulator.baseUrl}/v1beta/models/${MODEL}:streamGenerateContent?alt=sse&key=secret`,
    {
      method: 'POST',
      headers: { 'x-goog-api-key': 'secret', authorization: 'Bearer secret', 'x-mine': 'kept' },
      body: JSON.stringify({ contents: [{ parts: [{ text: '[[say one two]]' }] }] }),
    },
  )
  await response.text()
  const [request] = emulator.requests
  await request?.done
  expect(request).toMatchObject({
    method: 'streamGenerateContent',
    model: MODEL,
    path: `/v1beta/models/${MODEL}:streamGenerateContent?alt=sse&key=[redacted]`,
    body: { contents: [{ parts: [{ text: '[[say one two]]' }] }] },
    status: 200,
    chunksSent: 2,
    aborted: false,
  })
  expect(request?.headers['x-mine']).toBe('kept')
  expect(JSON.stringify(emulator.requests)).not.toContain('secret')
})

test('[EM52] each request is logged without its key', async () => {
  const lines: string[] = []
  await using emulator = await startEmulator({ log: (line) => lines.push(line) })
  await stream(emulator, '[[say one two]]')
  await emulator.requests[0]?.done
  expect(lines).toEqual([
    expect.stringMatching(/^streamGenerateContent gemini-2\.5-flash 200 \(2 chunks, \d+ ms\)$/),
  ])
})

test('[EM53] `nextRequest` returns each request once, earlier ones first', async () => {
  await using emulator = await startEmulator()
  await ask(emulator, '[[say first]]')
  await ask(emulator, '[[say second]]')
  const third = emulator.nextRequest(({ body }) => JSON.stringify(body).includes('third'))
  const first = await emulator.nextRequest()
  const second = await emulator.nextRequest()
  expect([first, second]).toEqual(emulator.requests)
  await ask(emulator, '[[say third]]')
  expect(await third).toBe(emulator.requests[2])
})

test('[EM53] a predicate that throws rejects only its own call', async () => {
  await using emulator = await startEmulator()
  const failing = emulator.nextRequest(() => {
    throw new Error('a bug in my predicate')
  })
  const outcomes = Promise.allSettled([failing, emulator.nextRequest()])
  expect((await ask(emulator, '[[say fine]]')).text).toBe('fine')
  expect(await outcomes).toMatchObject([
    { status: 'rejected', reason: { message: 'a bug in my predicate' } },
    { status: 'fulfilled', value: { status: 200 } },
  ])
})

test('[EM54] only the latest requests are kept, and `reset` removes them', async () => {
  await using emulator = await startEmulator({ keepRequests: 2 })
  for (const word of ['a', 'b', 'c']) await ask(emulator, `[[say ${word}]]`)
  expect(JSON.stringify(emulator.requests.map((request) => request.body))).not.toContain('say a')
  expect(emulator.requests).toHaveLength(2)
  emulator.reset()
  expect(emulator.requests).toHaveLength(0)
})

test('[EM55] `close` ends connections, rejects pending waits, and can be called twice', async () => {
  const emulator = await startEmulator()
  const open = ask(emulator, '[[wait forever]]')
  const idle = openSocket(emulator.port, '127.0.0.1')
  const idleClosed = new Promise((resolve) => idle.once('close', resolve))
  const request = await emulator.nextRequest()
  const waiting = emulator.nextRequest()
  const outcomes = Promise.allSettled([open, waiting])
  await Promise.all([emulator.close(), emulator.close()])
  const [asked, waited] = await outcomes
  expect(asked.status).toBe('rejected')
  expect(waited).toMatchObject({ status: 'rejected', reason: { code: 'closed' } })
  await request.done
  await idleClosed
  await expect(fetch(emulator.baseUrl)).rejects.toThrow('fetch failed')
  await expect(emulator.nextRequest()).rejects.toMatchObject({ code: 'closed' })
})

test('[EM55] a port in use is reported', async () => {
  await using emulator = await startEmulator()
  await expect(startEmulator({ port: emulator.port })).rejects.toMatchObject({
    name: 'EmulatorError',
    code: 'port-in-use',
  })
})

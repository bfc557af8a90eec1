import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'

import { afterEach, expect, test, vi } from 'vitest'

import { listen } from '../../../../test/support/listen.ts'
import type { Chunk } from '../../src/protocol/chunk.ts'
import { SSE_DONE } from '../../src/protocol/sse.ts'
import { SseResponse } from '../../src/server/http/sse-response.ts'
import { defer } from '../../src/shared/async.ts'
import { TurnLog } from '../../src/turns/turn-log.ts'

const LIMITS = { maxLag: 1_000_000, stallTimeoutMs: 60_000, maxReplay: 1_000_000 }
const delta = (text: string): Chunk => ({ type: 'text-delta', id: 'text-1', delta: text })

afterEach(() => vi.useRealTimers())

test('[TU795] chunks in short succession are sent together, the first one and the end at once', async () => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'],
  })
  const log = new TurnLog(LIMITS)
  log.append({ type: 'start', messageId: 'm1' })
  const opened = defer<ServerResponse>()
  const server = createServer((_request, response) => opened.resolve(response))
  const fetched = fetch(`http://127.0.0.1:${await listen(server)}`)
  const response = await opened.promise
  const write = vi.spyOn(response, 'write')
  const sink = new SseResponse(response, 60_000, { end: SSE_DONE })
  log.attach(sink)
  sink.start()

  log.append(delta('a'))
  // The first chunk of the agent takes the head along.
  expect(write).toHaveBeenCalledTimes(1)
  for (const text of 'bcdef') log.append(delta(text))
  expect(write).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(16)
  expect(write).toHaveBeenCalledTimes(2)
  vi.advanceTimersByTime(100)
  log.append(delta('g'))
  expect(write).toHaveBeenCalledTimes(3)
  log.append(delta('h'))
  expect(write).toHaveBeenCalledTimes(3)
  const finished = once(response, 'finish')
  log.end()
  await finished

  const body = await (await fetched).text()
  expect([...body.matchAll(/"delta":"(.)"\}\n\n/g)].map(([, text]) => text).join('')).toBe(
    'abcdefgh',
  )
  expect(body).toMatch(/^data: \{"type":"start".*data: \[DONE\]\n\n$/s)
  server.close()
})

test('[TU795] the start of a turn is sent although the agent has not replied', async () => {
  const log = new TurnLog(LIMITS)
  log.append({ type: 'start', messageId: 'm1' })
  const server = createServer((_request, response) => {
    const sink = new SseResponse(response, 60_000, { end: SSE_DONE })
    log.attach(sink)
    sink.start()
  })
  const { body } = await fetch(`http://127.0.0.1:${await listen(server)}`)
  const { value } = (await body?.getReader().read()) ?? {}
  expect(new TextDecoder().decode(value)).toContain('"messageId":"m1"')
  log.end()
  server.closeAllConnections()
  server.close()
})

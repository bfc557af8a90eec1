import { once } from 'node:events'
import { afterEach, expect, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'

import { portOf } from '../../../../test/support/listen.ts'
import type { ConnectionState, LiveEvent } from '../../src/client/index.ts'
import { webSocketTransport } from '../../src/client/index.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { ClientPage, versions } from './support/client-page.ts'

afterEach(() => vi.unstubAllGlobals())

const [version] = versions
const NOBODY = { url: 'ws://127.0.0.1:1', backoff: { firstMs: 1, maxMs: 2, attempts: 2 } }

test('[CL19] a socket reports its state: open, lost, open again, given up, closed', async () => {
  await using testBridge = await TestBridge.open()
  await using page = new ClientPage({ url: testBridge.url, version })
  const states: ConnectionState[] = []
  page.transport.onConnection((state) => states.push(state))
  expect(page.transport.connection).toEqual({ state: 'idle' })
  page.transport.watch('chat-1')
  await page.transport.ping()
  expect(page.transport.connection).toBe(states.at(-1))
  page.cut()
  await page.transport.ping()
  page.transport.close()
  expect(
    states.map(({ retryAt, ...state }) => ({ ...state, later: retryAt !== undefined })),
  ).toEqual([
    { state: 'connecting', later: false },
    { state: 'open', later: false },
    { state: 'lost', attempt: 1, later: true },
    { state: 'lost', attempt: 1, later: false },
    { state: 'open', later: false },
    { state: 'closed', later: false },
  ])
})

test('[CL27] a ping settles: with its pong, when the socket is given up, and after a timeout', async () => {
  await using page = new ClientPage({ url: '', version, live: NOBODY })
  await expect(page.transport.ping()).rejects.toThrow('network')
  const silent = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(silent, 'listening')
  const port = portOf(silent)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const transport = webSocketTransport({ url: `ws://127.0.0.1:${port}`, webSocket: WebSocket })
  const ping = transport.ping()
  vi.advanceTimersByTime(10_000)
  await expect(ping).rejects.toThrow('network')
  vi.useRealTimers()
  transport.close()
  silent.close()
})

test('[CL27] listeners are notified when the socket is given up, and audio opens another one', async () => {
  await using testBridge = await TestBridge.open()
  let isThere = false
  const live = {
    ...NOBODY,
    url: () => (isThere ? `${testBridge.url.replace('http', 'ws')}/live` : NOBODY.url),
  }
  await using page = new ClientPage({ url: testBridge.url, version, live })
  const events: LiveEvent[] = []
  page.transport.watch('chat-1', (event) => events.push(event), { audio: 'binary' })
  await vi.waitFor(() => expect(events).toMatchObject([{ type: 'given-up' }]), {
    timeout: 120_000,
    interval: 10,
  })
  isThere = true
  expect(page.transport.sendAudio(new Uint8Array(2))).toBe(false)
  await page.transport.ping()
  expect(page.transport.sendAudio(new Uint8Array(2))).toBe(true)
  expect(page.types[0]).toBe('watch')
})

test('[CL27] the audio mode of a chat is the richest that a listener wants, until it unsubscribes', async () => {
  await using testBridge = await TestBridge.open()
  await using page = new ClientPage({ url: testBridge.url, version })
  const { transport } = page
  await transport.ping()
  const first = transport.watch('chat-1', undefined, { audio: 'binary' })
  const second = transport.watch('chat-1')
  const other = transport.watch('chat-2', undefined, { audio: 'binary' })
  other()
  first()
  second()
  await transport.ping()
  expect(page.sent.filter(({ type }) => type !== 'ping')).toEqual([
    { type: 'watch', id: 'chat-1', audio: 'binary' },
    { type: 'watch', id: 'chat-1', audio: 'binary' },
    { type: 'watch', id: 'chat-2', audio: 'binary' },
    { type: 'unwatch', id: 'chat-2' },
    // The server accepts binary audio for one chat, and it is this one again.
    { type: 'watch', id: 'chat-1', audio: 'binary' },
    { type: 'watch', id: 'chat-1', audio: 'none' },
    { type: 'unwatch', id: 'chat-1' },
  ])
})

test('[CL27] the transport works on pages without HTTPS, and can be created on a server that renders pages', async () => {
  vi.stubGlobal('WebSocket', undefined)
  const transport = webSocketTransport(NOBODY)
  await expect(transport.ping()).rejects.toMatchObject({ code: 'unavailable' })
  vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) })
  await using testBridge = await TestBridge.open()
  await using page = new ClientPage({ url: testBridge.url, version })
  const chat = await page.open()
  await chat.send('[[say Hello.]]')
  expect(chat.text).toBe('Hello.')
})

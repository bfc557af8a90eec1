import { Chat as Chat6 } from '@ai-sdk/react'
import { Chat as Chat7 } from '@ai-sdk/react-7'
import type { RequestListener, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'

import { listen } from '../../../../test/support/listen.ts'
import type { AdkApi, ChatSummary } from '../../src/client/index.ts'
import { AdkError, adkApi, sseTransport } from '../../src/client/index.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { defer } from '../support/agents.ts'
import { openSse, versions } from './support/client-page.ts'
import { CuttableFetch } from './support/cuttable-fetch.ts'
import type { ListEvent } from '../../src/protocol/server-views.ts'
import { readSse } from '../../src/client/api/http.ts'
import type { WatchEvent } from '../../src/client/api/watch-feed.ts'

const HEADERS = { 'x-api-key': 'hanako' }
const [version] = versions

/** Starts a server whose responses the test defines. */
async function serveResponses(
  listener: RequestListener,
): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer(listener)
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test('[CL17] a chat is loaded as messages of AI SDK 6 and 7, without a cast, and can be deleted', async () => {
  await using testBridge = await TestBridge.open()
  const transport = sseTransport({ url: testBridge.url, headers: HEADERS })
  const chat = await openSse(transport, version)
  await chat.send('[[say Hello.]]')
  const api = adkApi({ url: testBridge.url, headers: () => Promise.resolve(HEADERS) })
  const { messages, running } = await api.loadChat('chat-1')
  expect(running).toBe(false)
  const chats = [
    new Chat6({ id: 'chat-1', messages, transport }),
    new Chat7({ id: 'chat-1', messages, transport }),
  ]
  for (const loaded of chats)
    expect(JSON.parse(JSON.stringify(loaded.messages))).toEqual(
      JSON.parse(JSON.stringify(chat.messages)),
    )
  await api.deleteChat('chat-1')
  expect(await api.loadChat('chat-1')).toEqual({ messages: [], running: false, position: '0.' })
})

test('[CL17] pending approvals are listed, read with their history, and decided; a rejection is an AdkError', async () => {
  await using testBridge = await TestBridge.open()
  const transport = sseTransport({ url: testBridge.url, headers: HEADERS })
  const chat = await openSse(transport, version)
  await chat.send(callPayment(50))
  const { api } = transport
  const [approval, ...rest] = await api.listApprovals()
  expect(rest).toEqual([])
  expect(approval).toMatchObject({ toolName: 'process_payment', own: true, chatId: 'chat-1' })
  const id = approval?.id ?? ''
  expect((await api.readApproval(id)).history).toMatchObject([{ type: 'requested' }])
  expect(await api.decide(id, { approved: false, reason: 'no' })).toBe('denied')
  await expect(api.decide(id, { approved: true })).rejects.toMatchObject({
    name: 'AdkError',
    code: 'approval-decided',
  })
  expect(await api.listApprovals()).toEqual([])
})

test('[CL17] chats are listed and renamed with the requests of the protocol', async () => {
  const summary: ChatSummary = {
    id: 'a/b',
    title: 'Money',
    createdAt: 1,
    updatedAt: 2,
    running: false,
    pending: 1,
  }
  const seen: string[] = []
  await using server = await serveResponses((request, response) => {
    let body = ''
    request.on('data', (piece: Buffer) => (body += piece.toString()))
    request.on('end', () => {
      seen.push(`${request.method} ${request.url} ${body}`)
      if (request.method === 'GET') response.end(JSON.stringify({ chats: [summary] }))
      else response.writeHead(204).end()
    })
  })
  const api = adkApi({ url: server.url })
  expect(await api.listChats()).toEqual([summary])
  await api.renameChat('a/b', 'Rent')
  expect(seen).toEqual(['GET /chats ', 'PATCH /chats/a%2Fb {"title":"Rent"}'])
})

test.each([
  ['a page of a proxy', 200, '<html>'],
  ['another shape', 200, '{"messages":{}}'],
  [
    'a part without its fields',
    200,
    '{"messages":[{"id":"a","role":"user","parts":[{"type":"text"}]}],"running":false}',
  ],
  [
    'a message with an unknown role',
    200,
    '{"messages":[{"id":"a","role":"root","parts":[]}],"running":false}',
  ],
  ['an error of a proxy', 502, '<html>'],
  ['an unknown code', 500, '{"error":{"code":"__proto__","message":"x"}}'],
])('[CL17] %s is reported as an AdkError', async (_name, status, body) => {
  await using server = await serveResponses((_request, response) =>
    response.writeHead(status).end(body),
  )
  const loaded = adkApi({ url: server.url }).loadChat('chat-1')
  await expect(loaded).rejects.toBeInstanceOf(AdkError)
  await expect(loaded).rejects.toMatchObject({ code: 'unavailable' })
})

test.each([
  ['null', 'null'],
  ['a list', '[]'],
  ['no chats and no approvals', '{}'],
  ['chats and approvals that are none', '{"chats":[null],"approvals":[null],"approval":1}'],
  [
    'fields of the wrong type',
    '{"chats":[{"id":1}],"approvals":[{"id":"a","args":[]}],"approval":{"id":"a","state":null}}',
  ],
])('[CL17] a response with %s is rejected, for every request', async (_name, body) => {
  await using server = await serveResponses((_request, response) =>
    response.writeHead(200).end(body),
  )
  const api = adkApi({ url: server.url })
  const asked = [
    api.listChats(),
    api.listApprovals(),
    api.readApproval('a'),
    api.decide('a', { approved: true }),
  ]
  for (const answer of asked)
    await expect(answer).rejects.toMatchObject({ name: 'AdkError', code: 'unavailable' })
})

test('[CL18] the feed of a chat is reopened until it is closed, and reports when it is lost and open', async () => {
  await using testBridge = await TestBridge.open()
  const net = new CuttableFetch()
  const api = adkApi({ url: testBridge.url, headers: HEADERS, fetch: net.fetch })
  const events: WatchEvent[] = []
  const waiting: { type: string; done: () => void }[] = []
  const next = (type: string): Promise<void> => {
    const { promise, resolve } = defer()
    waiting.push({ type, done: resolve })
    return promise
  }
  const opened = next('open')
  const end = api.watchChat(
    'chat-1',
    (event) => {
      events.push(event)
      for (const each of waiting) if (each.type === event.type) each.done()
    },
    { backoff: { firstMs: 1, maxMs: 4 } },
  )
  await opened
  net.fail(2)
  const reopened = next('open')
  net.cut()
  await reopened
  const turn = next('turn')
  const chat = await openSse(sseTransport({ url: testBridge.url, headers: HEADERS }), version)
  await chat.send('[[say Hello.]]')
  await turn
  expect(events).toMatchObject([
    { type: 'open', again: false },
    { type: 'lost', attempt: 1 },
    { type: 'lost', attempt: 2 },
    { type: 'lost', attempt: 3 },
    { type: 'open', again: true },
    { type: 'turn', messageId: chat.lastMessage?.id },
  ])
  end()
  const before = net.requests.length
  await chat.send('[[say More.]]')
  net.cut()
  expect(events).toHaveLength(6)
  expect(net.requests).toHaveLength(before)
})

test('[CL29] the feed of the lists reports chats and approvals, in the form of the protocol', async () => {
  await using testBridge = await TestBridge.open()
  const api = adkApi({ url: testBridge.url, headers: HEADERS })
  const events: WatchEvent<ListEvent>[] = []
  const opened = defer()
  const asked = defer()
  const end = api.watch((event) => {
    events.push(event)
    if (event.type === 'open') opened.resolve()
    if (event.type === 'approval') asked.resolve()
  })
  await opened.promise
  const chat = await openSse(sseTransport({ url: testBridge.url, headers: HEADERS }), version)
  await chat.send(callPayment(50))
  await asked.promise
  end()
  const [approvalId] = chat.asked
  expect(events[0]).toEqual({ type: 'open', again: false })
  expect(events).toContainEqual({ type: 'chat', chatId: 'chat-1' })
  expect(events).toContainEqual({
    type: 'approval',
    approvalId,
    state: 'requested',
    chatId: 'chat-1',
  })
  expect(events.map(({ type }) => type)).not.toContain('lost')
})

test('[CL18] a feed on which nothing arrives counts as lost, and is reopened', async () => {
  let requests = 0
  await using server = await serveResponses((_request, response) => {
    requests += 1
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (requests === 1) response.write(': keep-alive 20\n\n')
    else response.write(': keep-alive 60000\n\ndata: {"type":"chat","chatId":"a"}\n\n')
  })
  const events: WatchEvent<ListEvent>[] = []
  const reported = defer()
  const end = adkApi({ url: server.url }).watch(
    (event) => {
      events.push(event)
      if (event.type === 'chat') reported.resolve()
    },
    { backoff: { firstMs: 1, maxMs: 1 } },
  )
  await reported.promise
  end()
  expect(events).toMatchObject([
    { type: 'open', again: false },
    { type: 'lost', attempt: 1, error: { name: 'TypeError' } },
    { type: 'open', again: true },
    { type: 'chat', chatId: 'a' },
  ])
})

test('[CL18] a feed with keep-alives stays open, even without events', async () => {
  const opened = defer<ServerResponse>()
  await using server = await serveResponses((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    opened.resolve(response)
  })
  // The time of the client passes only between keep-alives, however late they arrive.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const { setTimeout: fakeTimeout } = globalThis
  const timers = { started: 0 }
  // Not a spy: `vi.restoreAllMocks()` of a later file would restore the fake timer.
  globalThis.setTimeout = Object.assign((...parameters: Parameters<typeof fakeTimeout>) => {
    timers.started += 1
    return fakeTimeout(...parameters)
  }, fakeTimeout)
  onTestFinished(() => {
    globalThis.setTimeout = fakeTimeout
    vi.useRealTimers()
  })
  const events: WatchEvent<ListEvent>[] = []
  const reported = defer()
  const end = adkApi({ url: server.url }).watch((event) => {
    events.push(event)
    if (event.type === 'chat') reported.resolve()
  })
  const response = await opened.promise
  for (let keepAlives = 0; keepAlives < 4; keepAlives += 1) {
    const before = timers.started
    response.write(': keep-alive 600\n\n')
    while (timers.started === before) await setImmediate()
    // Without the next one, the feed would be lost after three times 600 ms.
    vi.advanceTimersByTime(1_700)
  }
  response.write('data: {"type":"chat","chatId":"a"}\n\n')
  await reported.promise
  end()
  expect(events.map(({ type }) => type)).toEqual(['open', 'chat'])
})

test('[CL1955] a reply with keep-alives is not interrupted, nor while the chat reads; one without them is', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { readable, writable } = new TransformStream<string, string>()
  const server = writable.getWriter()
  const body = readable.pipeThrough(new TextEncoderStream())
  const chunks = readSse(body, new AbortController().signal)
  const first = chunks.next()
  await server.write(': keep-alive 600\n\n')
  for (let keepAlives = 0; keepAlives < 4; keepAlives += 1) {
    await vi.advanceTimersByTimeAsync(1_700)
    await server.write(': keep-alive\n\n')
  }
  await server.write('data: {"type":"start","messageId":"m1"}\n\n')
  await expect(first).resolves.toMatchObject({ value: { chunk: { messageId: 'm1' } } })
  await vi.advanceTimersByTimeAsync(600_000)
  await Promise.all([
    expect(chunks.next()).rejects.toThrow('network'),
    vi.advanceTimersByTimeAsync(1_800),
  ])
})

test.each<[string, (api: AdkApi, url: string) => Promise<unknown>]>([
  ['to load a chat', (api) => api.loadChat('chat-1')],
  ['to decide an approval', (api) => api.decide('adk-1', { approved: true })],
  ['to stop a turn', (api) => api.stopChat('chat-1', 'm1')],
  [
    'with the output of a browser tool',
    (_api, url) =>
      sseTransport({ url }).toolOutput({ chatId: 'chat-1', toolCallId: 'call-1', output: 1 }),
  ],
])(
  '[CL1955] a request %s that is not answered fails as if the connection were lost',
  async (_name, send) => {
    const arrived = defer()
    await using server = await serveResponses(() => arrived.resolve())
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const sent = send(adkApi({ url: server.url }), server.url)
    await Promise.all([
      expect(sent).rejects.toThrow('network'),
      arrived.promise.then(() => vi.advanceTimersByTime(60_000)),
    ])
  },
)

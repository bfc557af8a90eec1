import { expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'

import type { Chat } from '@ai-sdk/react'
import {
  type AdkUIMessage,
  type WireEvent,
  AdkError,
  adkApi,
  sseTransport,
} from '../../src/client/index.ts'
import { recoverChat } from '../../src/react/hooks/chat-actions.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { toLiveUrl } from '../sockets/support/socket-client.ts'
import { defer } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { ASK, locationTool, TOKYO } from '../support/locating.ts'
import { ClientPage, openSse, versions } from './support/client-page.ts'
import { CuttableFetch } from './support/cuttable-fetch.ts'

const WAIT = { timeout: 120_000, interval: 10 }
const [, version] = versions
const everyone = { principals: ['hanako', 'taro'] }

/** Opens a bridge with an approval that two people may decide. */
async function openAsked() {
  const approvals = { process_payment: { deciders: everyone } }
  const testBridge = await TestBridge.open({ approvals })
  const received: string[] = []
  const observe = (event: WireEvent): void => {
    if (event.type === 'frame' && event.direction === 'in')
      received.push(JSON.stringify(event.frame))
  }
  const page = new ClientPage({ url: testBridge.url, version, live: { hold: false, observe } })
  const chat = await page.open()
  await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
  const [id = ''] = await chat.untilAsked()
  return {
    testBridge,
    page,
    chat,
    id,
    received,
    async [Symbol.asyncDispose]() {
      await page[Symbol.asyncDispose]()
      await testBridge[Symbol.asyncDispose]()
    },
  }
}

test('[SE1120] a decision that waited for the connection is not sent as another person who has signed in since', async () => {
  await using asked = await openAsked()
  const { testBridge, id } = asked
  const net = new CuttableFetch()
  let key = 'hanako'
  const api = adkApi({
    url: testBridge.url,
    headers: () => ({ 'x-api-key': key }),
    fetch: net.fetch,
  })
  await api.listApprovals()
  net.fail(1)
  const decided = api.decide(id, { approved: true }, { keep: true })
  key = 'taro'
  await expect(decided).rejects.toMatchObject({ code: 'other-principal' })
  expect(api.refusedDecisions).toMatchObject([{ approvalId: id }])
  expect((await testBridge.page().approval(id)).approval.state).toBe('requested')
  expect(testBridge.wallet.payments).toEqual([])
  // The person who is signed in now decides for themselves.
  await api.decide(id, { approved: true }, { keep: true })
  await testBridge.page().untilState(id, 'succeeded')
  const { history } = await testBridge.page().approval(id)
  expect(history).toMatchObject([{}, { type: 'approved', by: 'taro' }, {}, {}])
})

test('[SE1120] over a socket, a decision names the principal of the socket, and the server refuses another one', async () => {
  await using asked = await openAsked()
  const { testBridge, page, chat, id, received } = asked
  const decision = { id: 'chat-1', approvalId: id, approved: true, decidedAs: 'another-person' }
  page.sockets.at(-1)?.send(JSON.stringify({ type: 'decide', decisionId: 'd1', ...decision }))
  await page.transport.ping()
  expect(received.find((frame) => frame.includes('"decided"'))).toContain('other-principal')
  const parts = [
    { type: 'tool-process_payment', toolCallId: 'c', state: 'approval-responded' },
  ].map((part) => ({ ...part, approval: { id, approved: true } }))
  const messages = [{ id: chat.lastMessage?.id, role: 'assistant', parts }]
  const sent = { type: 'send', requestId: 'r9', id: 'chat-1', messages }
  page.sockets.at(-1)?.send(JSON.stringify({ ...sent, body: { decidedAs: 'another-person' } }))
  await page.transport.ping()
  expect(received.find((frame) => frame.includes('"r9"'))).toContain('Another person was signed in')
  expect((await testBridge.page().approval(id)).approval.state).toBe('requested')
  await chat.click({ id, approved: true })
  await chat.untilShown('Paid.')
  const last = page.sent.findLast(({ type }) => type === 'send')
  expect(JSON.stringify(last?.['body'])).toMatch(/"decidedAs":"[\w-]{22}"/)
})

test.each(['send', 'text'])(
  '[SE1120] a message that waited for the connection is not sent as another person who has signed in since: %s',
  async (type) => {
    await using testBridge = await TestBridge.open()
    let key = 'hanako'
    const sockets: WebSocket[] = []
    class PageSocket extends WebSocket {
      constructor(address: string, protocols?: string | string[]) {
        super(address, protocols, { headers: { 'x-api-key': key } })
        sockets.push(this)
      }
    }
    let canOpen = defer()
    canOpen.resolve()
    const url = (): Promise<string> => canOpen.promise.then(() => toLiveUrl(testBridge.url))
    const live = { webSocket: PageSocket, url }
    await using page = new ClientPage({ url: testBridge.url, version, live })
    const chat = await page.open()
    await chat.send('[[say Hello.]]')
    canOpen = defer()
    sockets[0]?.terminate()
    await vi.waitFor(() => expect(page.transport.connection.state).not.toBe('open'), WAIT)
    const sent = type === 'send' ? chat.send('[[say Second.]]') : undefined
    if (type === 'text') page.transport.sendText('chat-1', '[[say Second.]]')
    key = 'taro'
    canOpen.resolve()
    await sent
    await page.transport.ping()
    const taro = new ClientPage({ url: testBridge.url, version, key: 'taro' })
    expect(await taro.load('chat-1')).toEqual([])
    const readError = (): unknown => chat.error ?? chat.errors[0]
    await vi.waitFor(() => expect(readError()).toMatchObject({ code: 'other-principal' }), WAIT)
    expect(testBridge.asked).toBe(1)
    // After `close()`, the page does not know who is signed in.
    page.transport.close()
    key = 'hanako'
    await chat.send('[[say Third.]]')
    expect(chat.text).toBe('Third.')
  },
)

test.each(['HTTP', 'socket'])(
  '[SE1120] a chat that recovers over %s does not send a message as another person who has signed in since',
  async (over) => {
    await using testBridge = await TestBridge.open()
    let key = 'hanako'
    let isOffline = false
    const sockets: WebSocket[] = []
    class PageSocket extends WebSocket {
      constructor(address: string, protocols?: string | string[]) {
        super(address, protocols, { headers: { 'x-api-key': key } })
        sockets.push(this)
      }
    }
    const live = {
      webSocket: PageSocket,
      url: () => (isOffline ? 'ws://127.0.0.1:9' : toLiveUrl(testBridge.url)),
      backoff: { firstMs: 1, maxMs: 2, attempts: 2 },
    }
    await using page = new ClientPage({ url: testBridge.url, version, live })
    const transport = sseTransport({
      url: testBridge.url,
      headers: () => ({ 'x-api-key': key }),
      fetch: (input, init) =>
        isOffline ? Promise.reject(new TypeError('fetch failed')) : fetch(input, init),
    })
    const chat = over === 'HTTP' ? await openSse(transport, version) : await page.open()
    await chat.send('[[say Hello.]]')
    isOffline = true
    sockets.at(-1)?.terminate()
    await chat.send('[[say Second.]]')
    expect(chat.error).toBeInstanceOf(TypeError)
    key = 'taro'
    isOffline = false
    // The response shows who is signed in.
    expect(await transport.loadMessages('chat-1')).toEqual([])
    await recoverChat(chat.attached.chat as unknown as Chat<AdkUIMessage>, transport.api)
    expect(chat.error).toMatchObject({ code: 'other-principal' })
    expect(await transport.loadMessages('chat-1')).toEqual([])
    expect(testBridge.asked).toBe(1)
  },
)

test.each(['HTTP', 'a request over a socket', 'an open socket'])(
  '[SE1120] the output of a browser tool is not sent over %s as another person who has signed in since',
  async (over) => {
    await using testBridge = await TestBridge.open({ tools: () => [locationTool()] })
    let key = 'hanako'
    let isOffline = false
    const lost: string[] = []
    const statuses = new Set<number>()
    const sockets: WebSocket[] = []
    class PageSocket extends WebSocket {
      constructor(address: string, protocols?: string | string[]) {
        super(address, protocols, { headers: { 'x-api-key': key } })
        sockets.push(this)
      }
    }
    const live = {
      webSocket: PageSocket,
      url: () => (isOffline ? 'ws://127.0.0.1:9' : toLiveUrl(testBridge.url)),
      hold: over === 'an open socket',
    }
    await using page = new ClientPage({ url: testBridge.url, version, live })
    const transport = sseTransport({
      url: testBridge.url,
      headers: () => ({ 'x-api-key': key }),
      fetch: async (input, init) => {
        if (isOffline) lost.push(key)
        if (isOffline) throw new TypeError('fetch failed')
        const response = await fetch(input, init)
        if (String(init?.body).includes('"latitude"')) statuses.add(response.status)
        return response
      },
    })
    const chat = over === 'HTTP' ? await openSse(transport, version) : await page.open()
    const asked = chat.send(ASK)
    await chat.until(() => toolParts(chat.lastMessage)[0]?.state === 'input-available')
    if (over !== 'an open socket') await asked
    const { toolCallId = '' } = toolParts(chat.lastMessage)[0] ?? {}
    isOffline = true
    sockets.at(-1)?.terminate()
    const given = { tool: 'get_location', toolCallId, output: TOKYO }
    const sent = chat.attached.chat.addToolOutput(given)
    const untilLost = (who: string) => vi.waitFor(() => expect(lost).toContain(who), WAIT)
    if (over === 'HTTP') await untilLost('hanako')
    key = 'taro'
    if (over === 'HTTP') await untilLost('taro')
    isOffline = false
    // The response shows who is signed in.
    expect(await transport.loadMessages('chat-1')).toEqual([])
    await chat.until(() =>
      [chat.error, ...chat.errors].some(
        (error) => error instanceof AdkError && error.code === 'other-principal',
      ),
    )
    await sent
    expect([...statuses]).toEqual(over === 'HTTP' ? [403] : [])
    const stored = await testBridge.page().messages()
    expect(stored.flatMap(toolParts).map(({ state }) => state)).not.toContain('output-available')
    expect(testBridge.asked).toBe(1)
  },
)

test('[SE1120] responses name their principal with a tag, and a request that names another one is refused', async () => {
  await using asked = await openAsked()
  const { testBridge, id } = asked
  const read = async (key: string): Promise<string> => {
    const response = await fetch(`${testBridge.url}/approvals`, { headers: { 'x-api-key': key } })
    return response.headers.get('adk-principal') ?? ''
  }
  const [hanako, taro] = [await read('hanako'), await read('taro')]
  expect(hanako).toMatch(/^[\w-]{22}$/)
  expect(hanako).not.toBe(taro)
  expect(await read('hanako')).toBe(hanako)
  const decide = (tag: string): Promise<Response> =>
    fetch(`${testBridge.url}/approvals/${id}`, {
      method: 'POST',
      headers: { 'x-api-key': 'hanako', 'content-type': 'application/json', 'adk-principal': tag },
      body: '{"approved":true}',
    })
  const refused = await decide(taro)
  expect([refused.status, await refused.text()]).toEqual([
    403,
    expect.stringContaining('other-principal'),
  ])
  expect(await testBridge.page().history(id)).toEqual(['requested'])
  expect((await decide(hanako)).status).toBe(200)
})

import type { BaseTool } from '@google/adk'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { oneOf } from '../../../../test/support/long-run.ts'
import type { BridgeOptions, Principal } from '../../src/server/index.ts'
import { joinLive, openLiveTestBridge, whole } from '../live/support/live-test-bridge.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { assistant, tool } from '../support/agents.ts'
import { codeOf } from '../support/browser.ts'
import { clients } from '../support/clients.ts'
import { serve } from '../support/serve.ts'

const CLIENT = z.object({
  body: z.object({ locale: z.enum(['en', 'ja']) }),
  metadata: z.object({ page: z.string().max(100) }).optional(),
})

const context: NonNullable<BridgeOptions['context']> = {
  schema: CLIENT,
  toState: ({ principal, chatId, body, metadata }) => ({
    tenant: principal.attributes?.['tenant'],
    locale: body['locale'],
    page: metadata,
    'user:chat': chatId,
  }),
}

const HANAKO: Principal = { id: 'hanako', attributes: { tenant: 'acme' } }

/** A tool that records the state when it runs. */
function lookTool(): { readonly look: BaseTool; readonly seen: Record<string, unknown>[] } {
  const seen: Record<string, unknown>[] = []
  const look = tool('look', (_args, toolContext) => {
    seen.push(toolContext?.state.toRecord() ?? {})
    return { ok: true }
  })
  return { look, seen }
}

const LOOK = '[[call look {}]][[then]][[say Seen.]]'

async function open(options: Pick<BridgeOptions, 'context'> = {}) {
  const { look, seen } = lookTool()
  const server = await serve({
    agent: (model) => assistant(model, { tools: [look] }),
    authenticate: () => HANAKO,
    context,
    ...options,
  })
  return { server, seen }
}

function ask(more: object = {}, metadata?: unknown) {
  const parts = [{ type: 'text', text: LOOK }]
  const message = { id: crypto.randomUUID(), role: 'user', parts, metadata }
  return { id: 'chat-1', messages: [message], ...more }
}

const GIVEN = { tenant: 'acme', locale: 'ja', page: { page: '/cart' }, 'user:chat': 'chat-1' }

describe.each(oneOf(clients, 'ai 6'))('$name', (client) => {
  test('[RQ120] body, metadata and attributes of the principal are state for the agent', async () => {
    const { server, seen } = await open()
    await using _ = server
    const browser = server.browser()
    const fetch: typeof globalThis.fetch = (input, init) => {
      // What `new DefaultChatTransport({ body })` and `sendMessage({ metadata })` add.
      const sent = JSON.parse(String(init?.body)) as { messages: object[] }
      const messages = sent.messages.map((message) => ({ ...message, metadata: { page: '/cart' } }))
      const body = JSON.stringify({ locale: 'ja', ...sent, messages })
      return browser.fetch(input, { ...init, body })
    }
    const chat = client.openChat({ id: 'chat-1', api: `${server.url}/stream`, fetch })
    await chat.send(LOOK)
    expect(chat.text).toBe('Seen.')
    expect(seen).toMatchObject([GIVEN])
    expect(await browser.messages()).toMatchObject({ messages: [{ role: 'user' }, {}] })
  })
})

test('[RQ120] the socket sends the same, in `body` and in the message', async () => {
  const { server, seen } = await open()
  await using _ = server
  await using client = await SocketClient.open(server.url)
  const { messages } = ask({}, { page: '/cart' })
  const frame = { type: 'send', requestId: 'r1', id: 'chat-1', messages }
  client.send({ ...frame, body: { locale: 'ja', id: 'chat-2', chatId: 'chat-3', messages: [] } })
  await client.nextOf('end', 'r1')
  expect(seen).toMatchObject([GIVEN])
})

test('[RQ120] a live conversation has it too: by `send`, by `text`, and for speech only', async () => {
  const { look, seen } = lookTool()
  await using testBridge = await openLiveTestBridge({
    tools: () => [look],
    authenticate: () => HANAKO,
    context: {
      toState: ({ principal, body }) => ({ ...principal.attributes, ...body }),
    },
  })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.send({ type: 'text', id: 'chat-1', text: LOOK })
  const { requestId } = await client.nextOf('turn')
  await whole(client, requestId)
  expect(seen).toMatchObject([{ tenant: 'acme' }])
  const { messages } = ask()
  const frame = { type: 'send', requestId: 'r1', id: 'chat-1', messages }
  client.send({ ...frame, body: { locale: 'ja' } })
  await whole(client, 'r1')
  expect(seen.at(-1)).toMatchObject({ tenant: 'acme', locale: 'ja' })
  expect((await testBridge.page().messages()).map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'user',
    'assistant',
  ])
})

test.each([
  [ask({ locale: 'fr' }), 'body.locale'],
  [ask({}), 'body.locale'],
  [ask({ locale: 'en' }, { page: 5 }), 'metadata.page'],
])(
  '[RQ121] a context that does not match the schema is rejected before a turn starts',
  async (body, where) => {
    const { server, seen } = await open()
    await using _ = server
    const browser = server.browser()
    const response = await browser.post('/stream', body)
    expect(response.status).toBe(400)
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect(error).toMatchObject({ code: 'bad-request' })
    expect(error.message).toContain(where)
    expect(seen).toEqual([])
    expect(await browser.messages()).toMatchObject({ messages: [] })
  },
)

test('[RQ122] without the option nothing of the client reaches the state', async () => {
  const { look, seen } = lookTool()
  await using server = await serve({ agent: (model) => assistant(model, { tools: [look] }) })
  const body = ask({ 'user:admin': true, locale: 'ja', state: { a: 1 } }, { 'app:x': 1 })
  await (await server.browser().post('/stream', body)).text()
  expect(seen).toEqual([{}])
})

test('[RQ122] a client cannot set a key that all chats share, even if its whole body is used', async () => {
  const { server, seen } = await open({ context: { toState: ({ body }) => body } })
  await using _ = server
  const browser = server.browser()
  for (const key of ['app:rate', 'user:admin', 'temp:x']) {
    const response = await browser.post('/stream', ask({ [key]: 1 }))
    expect([response.status, await codeOf(response)]).toEqual([400, 'bad-request'])
  }
  await (await browser.post('/stream', ask({ locale: 'ja', __proto__: { admin: true } }))).text()
  expect(seen).toEqual([{ locale: 'ja' }])
})

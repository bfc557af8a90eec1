import { MCPToolset } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { readElicitation } from '../../src/calls/elicitation-terms.ts'
import { assistant } from '../support/agents.ts'
import { MCP_TRANSPORTS, serveHttp } from '../support/mcp-servers.ts'
import type { McpFixture } from '../support/mcp-servers.ts'
import type { Page } from './support/page.ts'
import type { TestBridgeOptions } from './support/test-bridge.ts'
import { TestBridge } from './support/test-bridge.ts'

const CITY = {
  message: 'Which city?',
  requestedSchema: {
    type: 'object',
    properties: { city: { type: 'string', minLength: 2 }, days: { type: 'integer' } },
    required: ['city'],
  },
}

const asks = (elicit: unknown) => [{ name: 'ask', _meta: { elicit } }]

function openFiles(files: McpFixture, options: TestBridgeOptions = {}): Promise<TestBridge> {
  const toolset = new MCPToolset(files.connection, [], 'files')
  return TestBridge.open({
    agent: (model) => assistant(model, { tools: [toolset] }),
    elicitation: true,
    ...options,
  })
}

/** Sends a message, and returns what the server has streamed so far when it asks a person. */
async function startCall(page: Page, id: string) {
  const text = '[[call files_ask {}]][[then]][[say Done.]]'
  const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
  const response = await page.fetch('http://localhost/stream', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id, messages: [message] }),
  })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let streamed = ''
  const readUntil = async (part: string): Promise<string> => {
    while (!streamed.includes(part)) {
      const { value, done } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done) throw new Error(`The stream ended without ${part}: ${streamed}`)
      streamed += value
    }
    return streamed
  }
  return { readUntil }
}

/** Starts a call whose server asks, and returns the question. */
async function ask(page: Page, id: string) {
  const stream = await startCall(page, id)
  const streamed = await stream.readUntil('"kind":"elicitation"')
  const [question] = await page.inbox()
  if (!question) throw new Error('The inbox is empty.')
  return { ...stream, streamed, question }
}

async function partsOf(page: Page, id: string) {
  const messages = await page.messages(id)
  const parts = messages.at(-1)?.parts ?? []
  return {
    tool: parts.find(({ type }) => type === 'tool-mcp_elicitation'),
    approval: parts.find(({ type }) => type === 'data-approval'),
    outer: parts.find(({ type }) => type === 'tool-files_ask'),
  }
}

describe.each(Object.entries(MCP_TRANSPORTS))('over %s', (_name, serveTools) => {
  test('[AP503] a question of an MCP server is shown while its call runs, and the answer reaches the server', async () => {
    await using files = await serveTools(asks(CITY))
    await using bridge = await openFiles(files)
    const page = bridge.page()
    const { question, readUntil, streamed } = await ask(page, 'one')
    expect(streamed).toContain('"toolName":"mcp_elicitation"')
    expect(streamed).not.toContain('tool-approval-request')
    expect(question).toMatchObject({
      kind: 'elicitation',
      toolName: 'mcp_elicitation',
      hint: 'Which city?',
      title: 'Question from files',
      args: { server: 'files', tool: 'files_ask', mode: 'form', message: 'Which city?' },
      schema: { properties: { city: { type: 'string' } } },
    })
    const answered = await page.decide(question.id, { approved: true, payload: { city: 'Kyoto' } })
    expect(answered.status).toBe(200)
    await readUntil('[DONE]')
    expect((await page.approval(question.id)).approval.state).toBe('succeeded')
    const { tool, approval, outer } = await partsOf(page, 'one')
    expect(tool).toMatchObject({ state: 'output-available', output: { city: 'Kyoto' } })
    expect(approval).toMatchObject({ data: { state: 'approved', kind: 'elicitation' } })
    expect(JSON.stringify(outer)).toContain(
      JSON.stringify(JSON.stringify({ action: 'accept', content: { city: 'Kyoto' } })).slice(1, -1),
    )
    // The model knows the call and its result only.
    expect(bridge.told).not.toContain('mcp_elicitation')
    expect(files.calls()).toEqual(['ask'])
    expect(bridge.errors).toEqual([])
  })
})

test('[AP504] an answer that does not match the schema is rejected, and the question stays open', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { question, readUntil } = await ask(page, 'one')
  const wrong = [{ city: 'K' }, { days: 2 }, { city: 'Kyoto', admin: true }, 'Kyoto', undefined]
  for (const payload of wrong) {
    const { body } = await page.decide(question.id, { approved: true, payload })
    expect(body.error?.code).toBe('invalid-answer')
  }
  expect((await bridge.page('taro').show(question.id)).status).toBe(404)
  await page.decide(question.id, { approved: false })
  await readUntil('[DONE]')
  const { tool, approval, outer } = await partsOf(page, 'one')
  expect(JSON.stringify(outer)).toContain('decline')
  expect(tool).toMatchObject({ state: 'output-error' })
  expect(approval).toMatchObject({ data: { state: 'denied' } })
})

test('[AP504] a question without an answer before its deadline ends as cancelled for the server', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files, { approvalDeadlineMs: 1_000 })
  const page = bridge.page()
  const { question, readUntil } = await ask(page, 'one')
  await readUntil('[DONE]')
  expect((await page.approval(question.id)).approval.state).toBe('expired')
  const { approval, outer } = await partsOf(page, 'one')
  expect(JSON.stringify(outer)).toContain('cancel')
  expect(approval).toMatchObject({ data: { state: 'expired' } })
})

test('[AP504] a client can send the answer as the output of the call, and reads the rest of the turn', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { question, readUntil } = await ask(page, 'one')
  const { approval } = await page.approval(question.id)
  const { messageId, toolCallId } = approval
  const part = {
    type: 'tool-mcp_elicitation',
    toolCallId,
    state: 'output-available',
    input: {},
    output: { city: 'Kyoto' },
  }
  const message = { id: messageId, role: 'assistant', parts: [part] }
  const response = await page.post({ id: 'one', messages: [message] })
  expect(response).toMatchObject({ status: 200 })
  await readUntil('[DONE]')
  expect((await page.approval(question.id)).approval.state).toBe('succeeded')
})

test('[AP505] a server that asks for a secret or for nested values is refused, and nobody is asked', async () => {
  const field = (name: string, schema: object = { type: 'string' }) => ({
    mode: 'form' as const,
    message: 'Hi',
    requestedSchema: { type: 'object' as const, properties: { [name]: schema } },
  })
  const refused = [
    ...['password', 'apiKey', 'api_key', 'accessToken', 'client-secret', 'PIN', 'Private Key'].map(
      (name) => field(name),
    ),
    field('answer', { type: 'string', title: 'Your password' }),
    field('answer', { type: 'string', format: 'password' }),
    field('answer', { type: 'object', properties: {} }),
    field('answer', { type: 'array', items: { type: 'object', properties: {} } }),
    { ...field('city'), message: ' ' },
  ]
  for (const params of refused)
    expect(readElicitation(params as never), JSON.stringify(params)).toHaveProperty('fault')
  for (const name of ['city', 'maxTokens', 'opinion', 'compass'])
    expect(readElicitation(field(name) as never)).toMatchObject({ mode: 'form' })

  await using files = await serveHttp(asks(field('password')))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { readUntil } = await startCall(page, 'one')
  expect(await readUntil('[DONE]')).not.toContain('elicitation')
  expect(await page.inbox()).toEqual([])
})

test('[AP506] a person is asked to open a URL, which is shown with its host', async () => {
  const url = 'https://pay.example.com/checkout?id=1'
  const elicit = { mode: 'url', message: 'Please pay.', url, elicitationId: 'one' }
  await using files = await serveHttp(asks(elicit))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { question, readUntil } = await ask(page, 'one')
  expect(question).toMatchObject({ args: { mode: 'url', url, host: 'pay.example.com' } })
  expect(question).not.toHaveProperty('schema')
  await page.decide(question.id, { approved: true })
  await readUntil('[DONE]')
  const { outer } = await partsOf(page, 'one')
  expect(JSON.stringify(outer)).toContain('accept')
  expect(JSON.stringify(outer)).not.toContain('content\\":null')
})

test.each([
  ['http://pay.example.com', false],
  ['https://bank.example@evil.example/', false],
  ['javascript:alert(1)', false],
  ['file:///etc/passwd', false],
  ['https://127.0.0.1.evil.example/', true],
  ['http://127.0.0.1.evil.example/', false],
  ['http://127.0.0.1:8080/', true],
  ['http://localhost/', true],
])('[AP506] the URL %s is accepted: %s', (url, isAccepted) => {
  const read = readElicitation({ mode: 'url', message: 'Open.', url, elicitationId: '1' })
  expect('fault' in read).toBe(!isAccepted)
})

test('[AP507] stopping the turn cancels the question', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { question, readUntil } = await ask(page, 'one')
  await page.fetch('http://localhost/chats/one/stop', { method: 'POST' })
  await readUntil('"state":"cancelled"')
  await page.untilState(question.id, 'cancelled')
  const { body } = await page.decide(question.id, { approved: true, payload: { city: 'Kyoto' } })
  expect(body.error?.code).toBe('approval-cancelled')
  await page.untilMessages(() => true, 'one')
  expect((await partsOf(page, 'one')).approval).toMatchObject({ data: { state: 'cancelled' } })
})

test('[AP507] a question whose process has crashed is cancelled', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files, { limits: { leaseMs: 200 } })
  const page = bridge.page()
  const crashed = new Ledger({ store: bridge.store.approvals, appName: 'adk-stream-protocol' })
  const question = await crashed.request({
    chat: { appName: 'adk-stream-protocol', principalId: 'hanako', chatId: 'one' },
    messageId: 'message',
    toolCallId: 'call.elicitation',
    toolName: 'mcp_elicitation',
    args: {},
    terms: {
      kind: 'elicitation',
      chain: [{ count: 1, principals: ['hanako'], roles: [] }],
      idempotent: false,
    },
    deadlineMs: 3_600_000,
    live: true,
  })
  await page.untilState('id' in question ? question.id : '', 'cancelled')
  expect(await page.inbox()).toEqual([])
})

test('[AP508] another process can answer the question', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { question, readUntil } = await ask(page, 'one')
  // Its changes do not reach the listeners of the first process.
  const other = new Ledger({ store: bridge.store.approvals, appName: 'adk-stream-protocol' })
  const by = { id: 'hanako', roles: [] }
  await other.decide(question.id, { by, approved: true, payload: { city: 'Kyoto' } })
  await readUntil('[DONE]')
  expect((await page.approval(question.id)).approval.state).toBe('succeeded')
})

test('[AP446] a server that elicits outside of a call, or without the option, is refused', async () => {
  const refusals: string[] = []
  await using files = await serveHttp(asks(CITY), undefined)
  await using bridge = await openFiles(files, { elicitation: false })
  const page = bridge.page()
  const { readUntil } = await startCall(page, 'one')
  await readUntil('[DONE]')
  expect(await page.inbox()).toEqual([])
  expect(refusals).toEqual([])
})

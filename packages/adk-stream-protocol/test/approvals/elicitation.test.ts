import { AgentTool, LlmAgent, MCPToolset, Workflow } from '@google/adk'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import type { ElicitRequestFormParams } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { CallClock } from '../../src/modules/mcp/mcp-sessions.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { readElicitation } from '../../src/modules/mcp/elicitation-request.ts'
import { defer } from '../../src/shared/async.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { assistant } from '../support/agents.ts'
import { MCP_TRANSPORTS, serveHttp } from '../support/mcp-servers.ts'
import type { McpFixture } from '../support/mcp-servers.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { textOf } from '../support/chat-probe.ts'
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

const CALL = '[[call files_ask {}]][[then]][[say Done.]]'

/** Sends a message, and returns what the server has streamed. */
async function send(page: Page, id: string, text = CALL): Promise<string> {
  const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
  const response = await page.fetch('http://localhost/stream', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id, messages: [message] }),
  })
  return response.text()
}

/** Starts a call whose server asks, and returns the question. */
async function ask(page: Page, chatId: string, text = CALL) {
  const streamed = await send(page, chatId, text)
  const [, id = ''] = /"approvalId":"([^"]+)"/.exec(streamed) ?? []
  // The question may have ended.
  const { approval: question } = await page.approval(id)
  return { streamed, question }
}

function isDone(message: ChatMessage | undefined): boolean {
  return message?.role === 'assistant' && textOf(message).includes('Done.')
}

/** Resolves when the model has replied. */
async function untilDone(page: Page, id: string): Promise<void> {
  await page.untilMessages((messages) => isDone(messages.at(-1)), id)
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
    const { question, streamed } = await ask(page, 'one')
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
    expect(await page.inbox()).toMatchObject([{ id: question.id, kind: 'elicitation' }])
    const answered = await page.decide(question.id, { approved: true, payload: { city: 'Kyoto' } })
    expect(answered.status).toBe(200)
    await untilDone(page, 'one')
    expect((await page.approval(question.id)).approval.state).toBe('succeeded')
    const { tool, approval, outer } = await partsOf(page, 'one')
    expect(tool).toMatchObject({ state: 'output-available', output: { city: 'Kyoto' } })
    expect(approval).toMatchObject({ data: { state: 'approved', kind: 'elicitation' } })
    expect(JSON.stringify(outer)).toContain(
      JSON.stringify(JSON.stringify({ action: 'accept', content: { city: 'Kyoto' } })).slice(1, -1),
    )
    // The model knows the call and its result only.
    expect(bridge.lastPrompt).not.toContain('mcp_elicitation')
    expect(files.calls()).toEqual(['ask'])
    expect(bridge.errors).toEqual([])
  })
})

test('[AP504] an answer that does not match the schema is rejected, and the question stays open', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { question } = await ask(page, 'one')
  const wrong = [{ city: 'K' }, { days: 2 }, { city: 'Kyoto', admin: true }, 'Kyoto', undefined]
  for (const payload of wrong) {
    const { body } = await page.decide(question.id, { approved: true, payload })
    expect(body.error?.code).toBe('invalid-answer')
  }
  expect((await bridge.page('taro').show(question.id)).status).toBe(404)
  await page.decide(question.id, { approved: false })
  await untilDone(page, 'one')
  const { tool, approval, outer } = await partsOf(page, 'one')
  expect(JSON.stringify(outer)).toContain('decline')
  expect(tool).toMatchObject({ state: 'output-error' })
  expect(approval).toMatchObject({ data: { state: 'denied' } })
})

test('[AP504] a question without an answer before its deadline ends as cancelled for the server', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files, { approvalDeadlineMs: 1_000 })
  const page = bridge.page()
  const { question } = await ask(page, 'one')
  await untilDone(page, 'one')
  expect((await page.approval(question.id)).approval.state).toBe('expired')
  const { approval, outer } = await partsOf(page, 'one')
  expect(JSON.stringify(outer)).toContain('cancel')
  expect(approval).toMatchObject({ data: { state: 'expired' } })
})

test('[AP504] a client can send the answer as the output of the call, and reads the rest of the turn', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { question } = await ask(page, 'one')
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
  await untilDone(page, 'one')
  expect((await page.approval(question.id)).approval.state).toBe('succeeded')
})

function asksFor(name: string, schema: object = { type: 'string' }) {
  const requestedSchema = { type: 'object', properties: { [name]: schema } }
  return { mode: 'form', message: 'Hi', requestedSchema } as ElicitRequestFormParams
}

test.each([
  ...['password', 'apiKey', 'api_key', 'accessToken', 'client-secret', 'PIN', 'Private Key'].map(
    (name) => asksFor(name),
  ),
  asksFor('answer', { type: 'string', title: 'Your password' }),
  asksFor('answer', { type: 'string', format: 'password' }),
  asksFor('answer', { type: 'object', properties: {} }),
  asksFor('answer', { type: 'array', items: { type: 'object', properties: {} } }),
  { ...asksFor('city'), message: ' ' },
])('[AP505] nobody is asked %j', (params) => {
  expect(readElicitation(params)).toHaveProperty('fault')
})

test.each(['city', 'maxTokens', 'opinion', 'compass'])(
  '[AP505] a person is asked for the field %s',
  (name) => {
    expect(readElicitation(asksFor(name))).toMatchObject({ mode: 'form' })
  },
)

test.each([
  ['a secret', asksFor('password')],
  ['nested values', asksFor('answer', { type: 'object', properties: {} })],
])('[AP505] a server that asks for %s is refused, and its call ends', async (_name, elicit) => {
  await using files = await serveHttp(asks(elicit))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  expect(await send(page, 'one')).not.toContain('mcp_elicitation')
  expect(await page.inbox()).toEqual([])
  expect(String(bridge.errors[0])).toContain('McpError')
})

test('[AP506] a person is asked to open a URL, which is shown with its host', async () => {
  const url = 'https://pay.example.com/checkout?id=1'
  const elicit = { mode: 'url', message: 'Please pay.', url, elicitationId: 'one' }
  await using files = await serveHttp(asks(elicit))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { question } = await ask(page, 'one')
  expect(question).toMatchObject({ args: { mode: 'url', url, host: 'pay.example.com' } })
  expect(question).not.toHaveProperty('schema')
  await page.decide(question.id, { approved: true })
  await untilDone(page, 'one')
  const { outer } = await partsOf(page, 'one')
  expect(JSON.stringify(outer)).toContain('accept')
  expect(JSON.stringify(outer)).not.toContain('content\\":null')
})

test.each([
  ['http://pay.example.com', false],
  ['https://bank.example@evil.example/', false],
  ['javascript:alert(1)', false],
  ['JavaScript:alert(1)', false],
  [' java\nscript:alert(1)', false],
  ['javascript://https://pay.example.com/%0aalert(1)', false],
  ['data:text/html,<script>alert(1)</script>', false],
  ['blob:https://pay.example.com/1', false],
  ['vbscript:alert(1)', false],
  ['//evil.example', false],
  ['file:///etc/passwd', false],
  ['https://127.0.0.1.evil.example/', true],
  ['http://127.0.0.1.evil.example/', false],
  ['http://127.0.0.1:8080/', true],
  ['http://localhost/', true],
])('[AP506] the URL %s is accepted: %s', (url, isAccepted) => {
  const read = readElicitation({ mode: 'url', message: 'Open.', url, elicitationId: '1' })
  expect('fault' in read).toBe(!isAccepted)
})

test('[AP585] forged answers change nothing, and the right one counts', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { question } = await ask(page, 'one')
  const { messageId, toolCallId } = question
  const answer = (id: string, given: object = {}) => {
    const state = 'output-available'
    const part = { type: 'tool-mcp_elicitation', toolCallId, state, input: {}, ...given }
    return { id, messages: [{ id: messageId, role: 'assistant', parts: [part] }] }
  }
  const output = { city: 'Osaka' }
  // Another person, another chat, the call that asks, an approval without an answer, and other arguments.
  await bridge.page('taro').post(answer('one', { output }))
  await bridge.page('taro').decide(question.id, { approved: true, payload: output })
  await page.post(answer('two', { output }))
  const [outer = ''] = String(toolCallId).split('.elicitation.')
  await page.post(answer('one', { toolCallId: outer, type: 'tool-files_ask', output }))
  const approval = { id: question.id, approved: true }
  await page.post(answer('one', { state: 'approval-responded', approval }))
  await page.decide(question.id, { approved: true, editedArgs: { message: 'Hi' } })
  expect((await page.approval(question.id)).approval.state).toBe('requested')
  await page.decide(question.id, { approved: true, payload: { city: 'Kyoto' } })
  await untilDone(page, 'one')
  expect(JSON.stringify(bridge.results)).toContain('Kyoto')
  expect(JSON.stringify(bridge.results)).not.toContain('Osaka')
})

test('[AP585] a model cannot ask under the name of an MCP server', async () => {
  await using files = await serveHttp([{ name: 'ask' }])
  await using bridge = await openFiles(files)
  const page = bridge.page()
  await send(page, 'one', '[[call mcp_elicitation {"message":"Password?"}]][[then]][[say Done.]]')
  expect(await page.inbox()).toEqual([])
  expect(JSON.stringify(await page.messages('one'))).not.toContain('"elicitation"')
})

test('[AP507] stopping the turn cancels the question', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { question } = await ask(page, 'one')
  await page.fetch('http://localhost/chats/one/stop', { method: 'POST' })
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
    isAwaited: true,
  })
  await page.untilState('id' in question ? question.id : '', 'cancelled')
  expect(await page.inbox()).toEqual([])
})

test('[AP507] a question is cancelled when its server no longer waits', async () => {
  await using files = await serveHttp([{ name: 'ask', _meta: { elicit: CITY, timeout: 1_000 } }])
  await using bridge = await openFiles(files)
  const page = bridge.page()
  const { question } = await ask(page, 'one')
  await untilDone(page, 'one')
  expect((await page.approval(question.id)).approval).toMatchObject({ state: 'cancelled' })
  const { approval } = await partsOf(page, 'one')
  const reason = 'the server that asked no longer waits'
  expect(approval).toMatchObject({ data: { state: 'cancelled', reason } })
})

test('[AP503] another server can answer the question', async () => {
  await using files = await serveHttp(asks(CITY))
  await using folder = await temporaryDirectory()
  const openStore = () => openSqliteStore({ path: folder.file('shared.db') })
  await using bridge = await openFiles(files, { openStore })
  await using other = await openFiles(files, { openStore })
  const { question } = await ask(bridge.page(), 'one')
  const answer = { approved: true, payload: { city: 'Kyoto' } }
  expect(await other.page().decide(question.id, answer)).toMatchObject({ status: 200 })
  await untilDone(bridge.page(), 'one')
  expect((await other.page().approval(question.id)).approval.state).toBe('succeeded')
})

test('[AP503] an approved call can ask, also if no client reads its turn', async () => {
  await using files = await serveHttp(asks(CITY))
  await using bridge = await openFiles(files, { approvals: { 'files_*': true } })
  const page = bridge.page()
  await send(page, 'one')
  const [approval] = await page.inbox()
  await page.decide(approval?.id ?? '', { approved: true })
  await page.untilState(approval?.id ?? '', 'executing')
  await page.untilInbox(1)
  const [question] = await page.inbox()
  expect(question?.['kind']).toBe('elicitation')
  await page.decide(question?.id ?? '', { approved: true, payload: { city: 'Kyoto' } })
  await untilDone(page, 'one')
  expect((await page.approval(approval?.id ?? '')).approval.state).toBe('succeeded')
  expect((await partsOf(page, 'one')).tool).toMatchObject({ output: { city: 'Kyoto' } })
  expect(bridge.errors).toEqual([])
})

test('[AP503] a call inside an agent that is used as a tool can ask', async () => {
  await using files = await serveHttp(asks(CITY))
  const toolset = new MCPToolset(files.connection, [], 'files')
  await using bridge = await TestBridge.open({
    elicitation: true,
    agent: (model) => {
      const inner = new LlmAgent({ name: 'inner', model, tools: [toolset] })
      return assistant(model, { tools: [new AgentTool({ agent: inner })] })
    },
  })
  const page = bridge.page()
  const request = '[[call files_ask {}]][[then]][[say Asked.]]'
  const { question } = await ask(
    page,
    'one',
    `[[call inner ${JSON.stringify({ request })}]][[then]][[say Done.]]`,
  )
  await page.decide(question.id, { approved: true, payload: { city: 'Kyoto' } })
  await untilDone(page, 'one')
  expect((await partsOf(page, 'one')).tool).toMatchObject({ output: { city: 'Kyoto' } })
  expect(bridge.errors).toEqual([])
})

test('[AP446] a server that elicits outside of a call is refused', async () => {
  const refusals: string[] = []
  const onList = async (mcp: McpServer): Promise<void> => {
    await mcp.server
      .elicitInput(CITY as ElicitRequestFormParams)
      .catch((error: unknown) => refusals.push(String(error)))
  }
  await using files = await serveHttp([{ name: 'ask' }], undefined, onList)
  await using bridge = await openFiles(files)
  const page = bridge.page()
  await send(page, 'one')
  expect(refusals[0]).toContain('Nobody was asked: no call of a tool runs')
  expect(await page.inbox()).toEqual([])
})

test.each<[place: string, make: (agent: LlmAgent) => LlmAgent | Workflow]>([
  ['an agent', (agent) => agent],
  ['a workflow', (agent) => new Workflow({ name: 'flow', edges: [['START', agent]] })],
])(
  '[AP503] in %s, a server sees the capability when its tools are listed',
  async (_place, make) => {
    await using files = await serveHttp([], undefined, (mcp) => {
      const { elicitation } = mcp.server.getClientCapabilities() ?? {}
      files.list(elicitation?.form && elicitation.url ? asks(CITY) : [])
    })
    await using bridge = await openFiles(files, {
      isLive: false,
      agent: (model) =>
        make(assistant(model, { tools: [new MCPToolset(files.connection, [], 'files')] })),
    })
    const page = bridge.page()
    const { question } = await ask(page, 'one')
    await page.decide(question.id, { approved: true, payload: { city: 'Kyoto' } })
    await untilDone(page, 'one')
    expect(files.calls()).toEqual(['ask'])
  },
)

test('[AP509] the time in which a person is asked does not count as time of the call', async () => {
  vi.useFakeTimers()
  onTestFinished(() => {
    vi.useRealTimers()
  })
  const clock = new CallClock()
  vi.advanceTimersByTime(50_000)
  const [first, second] = [defer(), defer()]
  const asked = [clock.pauseFor(() => first.promise), clock.pauseFor(() => second.promise)]
  first.resolve()
  await asked[0]
  vi.advanceTimersByTime(3_600_000)
  second.resolve()
  await Promise.all(asked)
  vi.advanceTimersByTime(9_000)
  expect(clock.signal.aborted).toBe(false)
  vi.advanceTimersByTime(2_000)
  expect(clock.signal.aborted).toBe(true)
})

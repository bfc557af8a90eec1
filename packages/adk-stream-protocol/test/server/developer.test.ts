import type { BaseLlm, Event } from '@google/adk'
import { InMemoryArtifactService, LlmAgent, requestInputTool } from '@google/adk'
import { afterEach, expect, test, vi } from 'vitest'
import { z } from 'zod'

import type { BridgeOptions } from '../../src/server/index.ts'
import { browserTool, createBridge } from '../../src/server/index.ts'
import type { Page } from '../approvals/support/page.ts'
import { ask, nest, pay, play, say } from '../approvals/support/nested-agents.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import type { TestBridgeOptions } from '../approvals/support/test-bridge.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { defer, EmulatedGemini, tool } from '../support/agents.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'

afterEach(() => void vi.unstubAllEnvs())

const open = (options: TestBridgeOptions = {}) =>
  TestBridge.open({ developer: true, isLive: false, ...options })

const message = (text: string, id = 'chat-1') => ({
  id,
  messages: [{ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }],
})

/** A session as its file has it. */
interface SessionFile {
  readonly state: Record<string, unknown>
  readonly events: Event[]
}

async function request(page: Page, method: string, path: string, body?: unknown) {
  const response = await page.fetch(`http://page/chats/${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const json = (text === '' ? {} : JSON.parse(text)) as {
    readonly error?: { readonly code: string; readonly message: string }
  }
  return { status: response.status, json, code: json.error?.code }
}

async function save(page: Page, chatId = 'chat-1'): Promise<SessionFile> {
  const { json } = await request(page, 'GET', `${chatId}/session`)
  // The endpoint returns a session of ADK.
  return json as unknown as SessionFile
}

test('[DV1670] the owner of a chat reads its session, and nobody else does', async () => {
  await using bridge = await open()
  const page = bridge.page()
  await page.post(message('[[say Hello.]]'))
  expect(await save(page)).toMatchObject({
    id: 'chat-1',
    userId: 'hanako',
    state: {},
    events: [{ author: 'user' }, { author: 'assistant' }],
  })
  const other = bridge.page('mari')
  for (const [reader, path] of [
    [other, 'chat-1/session'],
    [page, 'chat-2/session'],
  ] as const)
    expect(await request(reader, 'GET', path)).toMatchObject({ status: 404, code: 'unknown-chat' })
  expect(await request(other, 'PATCH', 'chat-1/session', { state: { a: 1 } })).toMatchObject({
    status: 404,
    code: 'unknown-chat',
  })
  expect(await request(other, 'GET', 'chat-1/artifacts')).toMatchObject({ json: { artifacts: [] } })
})

test.each(['GET', 'PATCH', 'POST'])(
  '[DV1670] without the option, or from another machine, there is no %s of a session',
  async (method) => {
    await using bridge = await open({ developer: false })
    const page = bridge.page()
    await page.post(message('[[say Hello.]]'))
    const body = method === 'GET' ? undefined : {}
    expect((await request(page, method, 'chat-1/session', body)).status).toBe(404)
    await using developing = await open()
    // A host that does not tell the address of the client.
    const unknown = await developing.bridge.fetch(
      new Request('http://localhost/chats/chat-1/session', {
        method,
        headers: { 'x-api-key': 'hanako', 'content-type': 'application/json' },
        ...(body && { body: '{}' }),
      }),
    )
    expect([unknown.status, await unknown.json()]).toMatchObject([
      403,
      { error: { code: 'not-allowed' } },
    ])
  },
)

test('[DV1670] createBridge refuses the option in production', () => {
  vi.stubEnv('NODE_ENV', 'production')
  const agent = new LlmAgent({ name: 'assistant', model: new EmulatedGemini('http://x') })
  expect(() => createBridge({ agent, developer: true })).toThrow(
    /`developer` is for development\. Remove it/,
  )
})

test('[DV1970] the agents are described with their tools, a graph and what needs approval, on this machine only', async () => {
  const look = tool('look', () => ({}))
  await using bridge = await open({
    tools: (wallet) => [look, paymentTool(wallet)],
    agent: (model, tools) => nest(model, tools),
  })
  const { json } = await request(bridge.page(), 'GET', '../agents')
  expect(json).toMatchObject({
    agents: [
      {
        name: 'planner',
        description: 'The agent planner.',
        tools: [
          { name: 'travel', approval: 'never' },
          { name: 'look', approval: 'never' },
          {
            name: 'process_payment',
            approval: 'always',
            parameters: { properties: { amount: { type: 'number' } } },
          },
        ],
        graph: {
          nodes: [
            { name: 'planner', kind: 'agent', model: 'gemini-2.5-flash' },
            { name: 'travel', kind: 'tool' },
            { name: 'look', kind: 'tool' },
            { name: 'process_payment', kind: 'tool' },
          ],
          edges: [
            { from: 'n0', to: 'n1' },
            { from: 'n1', to: 'n2' },
            { from: 'n1', to: 'n3' },
          ],
        },
      },
    ],
  })
  const unknown = await bridge.bridge.fetch(
    new Request('http://localhost/agents', { headers: { 'x-api-key': 'hanako' } }),
  )
  expect(unknown.status).toBe(403)
  await using other = await open({ developer: false })
  expect((await request(other.page(), 'GET', '../agents')).status).toBe(404)
})

test('[DV1671] an edited key of the state is an event of the session, and the agent reads it', async () => {
  const look = tool('look', (_args, context) => ({ seats: context?.state.get('seats') ?? 'none' }))
  await using bridge = await open({ tools: () => [look] })
  const page = bridge.page()
  await page.post(message('[[call look {}]]'))
  const before = await page.messages()
  const state = { seats: { row: 4, names: ['花子'] }, 'user:theme': 'dark', __proto__x: null }
  expect((await request(page, 'PATCH', 'chat-1/session', { state })).status).toBe(204)
  const saved = await save(page)
  expect(saved.state).toMatchObject(state)
  expect(saved.events.at(-1)).toMatchObject({ author: 'user', actions: { stateDelta: state } })
  expect(await page.messages()).toEqual(before)
  await page.post(message('[[call look {}]][[then]][[say Seen.]]'))
  expect(bridge.results.at(-1)).toEqual({ seats: state.seats })
  // A value that is the same is no event.
  const { events } = await save(page)
  await request(page, 'PATCH', 'chat-1/session', { state: { seats: state.seats } })
  expect((await save(page)).events).toHaveLength(events.length)
})

test('[DV1671] the state is not edited while a turn runs', async () => {
  const gate = defer()
  const started = defer()
  const wait = tool('wait', async () => {
    started.resolve()
    await gate.promise
    return {}
  })
  await using bridge = await open({ tools: () => [wait] })
  const page = bridge.page()
  const turn = page.post(message('[[call wait {}]]'))
  await started.promise
  expect(await request(page, 'PATCH', 'chat-1/session', { state: { seats: 1 } })).toMatchObject({
    status: 409,
    code: 'turn-running',
  })
  gate.resolve()
  await turn
  expect((await save(page)).state).toEqual({})
  expect((await request(page, 'PATCH', 'chat-1/session', { state: { seats: 1 } })).status).toBe(204)
})

test.each([
  ['no object', '[]', 'bad-request'],
  ['no JSON', '{', 'malformed-json'],
  ['a key that ADK forgets', { state: { 'temp:a': 1 } }, 'bad-request'],
  ['an empty key', { state: { '': 1 } }, 'bad-request'],
  ['something else', { state: {}, events: [] }, 'bad-request'],
])('[DV1671] an edit with %s is refused', async (_what, body, code) => {
  await using bridge = await open()
  const page = bridge.page()
  expect(await request(page, 'PATCH', 'chat-1/session', body)).toMatchObject({ status: 400, code })
})

const NAMES = ['chart.png', 'user:報告 "1".txt', '../../etc/passwd', '<img src=x>.html']

test('[DV1672] the artifacts of a chat are listed with their versions, the newest first', async () => {
  const write = tool('write', async (_args, context) => {
    for (const name of NAMES)
      await context?.saveArtifact(name, {
        inlineData: { mimeType: 'image/png', data: Buffer.from(name).toString('base64') },
      })
    return {}
  })
  await using bridge = await open({
    tools: () => [write],
    artifactService: new InMemoryArtifactService(),
  })
  const page = bridge.page()
  expect(await request(page, 'GET', 'chat-1/artifacts')).toMatchObject({ json: { artifacts: [] } })
  await page.post(message('[[call write {}]]'))
  await page.post(message('[[call write {}]]'))
  const { json } = await request(page, 'GET', 'chat-1/artifacts')
  expect(json).toEqual({ artifacts: NAMES.toSorted().map((name) => ({ name, versions: [1, 0] })) })
  // Each of them can be read by its name.
  for (const name of NAMES) {
    const path = `/chats/chat-1/artifacts/${encodeURIComponent(name)}?version=0`
    expect(await (await page.fetch(`http://page${path}`)).text()).toBe(name)
  }
})

/** Ids of approvals are replaced by an import. */
function withoutApprovalIds(messages: readonly ChatMessage[]): unknown {
  const ids = new Set(
    messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'data-approval' && 'id' in part ? [part.id] : [])),
    ),
  )
  const text = JSON.stringify(messages)
  return JSON.parse([...ids].reduce<string>((all, id) => all.replaceAll(String(id), 'ID'), text))
}

test('[DV1673] an imported session is the chat of the file, and goes on', async () => {
  await using bridge = await open()
  const page = bridge.page()
  await page.post(message('[[say Hello.]]'))
  await request(page, 'PATCH', 'chat-1/session', { state: { seats: 2, 'user:theme': 'dark' } })
  await page.post(message(`${callPayment(5)}[[then]][[say Paid.]]`))
  const [asked] = await page.inbox()
  await page.decide(asked?.id ?? '', { approved: true })
  await page.untilMessages((messages) => JSON.stringify(messages).includes('Paid.'))
  await page.post(message(`${callPayment(6)}[[then]][[say Not paid.]]`))
  const [denied] = await page.inbox()
  await page.decide(denied?.id ?? '', { approved: false, reason: 'Too much' })
  await page.untilMessages((messages) => JSON.stringify(messages).includes('Not paid.'))
  const file = await save(page)

  // Another person, as if it was another server.
  const other = bridge.page('mari')
  expect(await request(other, 'POST', 'copy/session', file)).toMatchObject({ status: 201 })
  expect(withoutApprovalIds(await other.messages('copy'))).toEqual(
    withoutApprovalIds(await page.messages()),
  )
  const copy = await save(other, 'copy')
  // The state of a user belongs to all of their chats.
  expect(copy.state).toEqual({ seats: 2 })
  expect(copy.events).toHaveLength(file.events.length)
  expect(JSON.stringify(copy)).not.toContain(asked?.id)
  await other.post(message(`${callPayment(7)}[[then]][[say Paid again.]]`, 'copy'))
  const [again] = await other.inbox()
  await other.decide(again?.id ?? '', { approved: true })
  await other.untilMessages((messages) => JSON.stringify(messages).includes('again.'), 'copy')
  expect(bridge.wallet.payments.map(({ amount }) => amount)).toEqual([5, 7])
  expect(await request(other, 'POST', 'copy/session', file)).toMatchObject({
    status: 400,
    json: { error: { message: 'The chat exists. Import the session into a new chat.' } },
  })
})

interface Waiting {
  readonly options?: TestBridgeOptions
  readonly text: string
}

const WAITING: Readonly<Record<string, Waiting>> = {
  'an approval': { text: `${callPayment(5)}[[then]][[say Paid.]]` },
  'two approvals': { text: `${callPayment(5)}${callPayment(6)}[[then]][[say Paid.]]` },
  'an approval inside an agent': {
    text: 'Go.',
    options: {
      agent: (model, tools) => nest(model, tools),
      respond: (prompt) =>
        JSON.stringify(prompt.contents.at(-1)).includes('Going on.')
          ? [say('Going on.')]
          : play({ planner: [[ask('travel')]], travel: [[pay(5), pay(6)]] })(prompt),
    },
  },
  'a question': {
    options: { tools: () => [requestInputTool] },
    text: '[[call adk_request_input {"message": "Where to?"}]]',
  },
  'a browser tool': {
    options: {
      tools: () => [
        browserTool({ name: 'locate', description: 'Finds.', parameters: z.object({}) }),
      ],
    },
    text: '[[call locate {}]]',
  },
}

test.each(Object.entries(WAITING))(
  '[DV1674] %s in the file has ended in the imported chat, and still waits in the original',
  async (_what, { options, text }) => {
    await using bridge = await open(options)
    const page = bridge.page()
    await page.post(message(text))
    const asked = await page.inbox()
    const original = await page.messages()
    expect(await request(page, 'POST', 'copy/session', await save(page))).toMatchObject({
      status: 201,
    })
    const [said, reply] = await page.messages('copy')
    expect(said).toEqual(original[0])
    const parts = toolParts(reply)
    expect(parts.map(({ type }) => type)).toEqual(toolParts(original[1]).map(({ type }) => type))
    expect(parts.filter(({ state }) => state?.startsWith('output-') !== true)).toEqual([])
    expect(JSON.stringify(reply)).toContain('the session was imported from a file')
    // The inbox and the original are as before.
    expect(await page.inbox()).toEqual(asked)
    expect(await page.messages()).toEqual(original)
    // A client that decides what the file says decides nothing.
    const ids = (reply?.parts ?? []).flatMap((part) =>
      part.type === 'data-approval' && 'id' in part ? [String(part.id)] : [],
    )
    const decided = await Promise.all(ids.map((id) => page.decide(id, { approved: true })))
    expect(decided.map(({ body }) => body.error?.code)).toEqual(ids.map(() => 'unknown-approval'))
    expect(bridge.wallet.payments).toEqual([])
    await page.post(message('[[say Going on.]]', 'copy'))
    const last = (await page.messages('copy')).at(-1)
    expect(last && textOf(last)).toBe('Going on.')
  },
)

const EVENT = { id: 'e', timestamp: 1, author: 'user', content: { parts: [{ text: 'Hi' }] } }

test.each<[string, unknown, RegExp]>([
  ['a list', [], /^This is not the file of an ADK session\.$/],
  ['another file', { name: 'package' }, /^This is not the file of an ADK session\.$/],
  ['no events', { events: [] }, /^This is not the file of an ADK session\.$/],
  ['an event of a wrong type', { events: [{ ...EVENT, timestamp: 'now' }] }, /^This is not/],
  ['an event without an id', { events: [{ ...EVENT, id: '' }] }, /^This is not/],
  ['a part that is none', { events: [{ ...EVENT, content: { parts: [7] } }] }, /^This is not/],
  ['events with the same id', { events: [EVENT, EVENT] }, /^The file is damaged: two of its/],
  [
    'parts that are not those of a message',
    { events: [{ ...EVENT, content: { parts: [{ functionCall: 5 }] } }] },
    /^This is not/,
  ],
])('[DV1673] a file with %s is refused with a sentence', async (_what, file, sentence) => {
  await using bridge = await open()
  const page = bridge.page()
  const { status, json } = await request(page, 'POST', 'copy/session', file)
  expect([status, json.error?.message]).toEqual([400, expect.stringMatching(sentence)])
  expect(await page.messages('copy')).toEqual([])
})

const createTwoAgents = (model: BaseLlm): Record<string, BridgeOptions['agent']> => ({
  sales: new LlmAgent({ name: 'sales', model }),
  support: new LlmAgent({ name: 'support', model }),
})

test('[DV1673] an imported chat has the agent of the file', async () => {
  await using bridge = await open({ agents: createTwoAgents })
  const page = bridge.page()
  await page.post({ ...message('[[say Hello.]]'), agent: 'support' })
  const file = await save(page)
  expect(file).toMatchObject({ agent: 'support' })
  await request(page, 'POST', 'copy/session', file)
  expect(await save(page, 'copy')).toMatchObject({ agent: 'support' })
  expect(await request(page, 'POST', 'other/session', { ...file, agent: 'none' })).toMatchObject({
    status: 400,
    code: 'bad-request',
  })
})

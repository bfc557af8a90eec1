import type { BaseLlm, BaseTool } from '@google/adk'
import {
  FunctionTool,
  InMemorySessionService,
  LlmAgent,
  LongRunningFunctionTool,
} from '@google/adk'
import { Modality } from '@google/genai'
import { describe, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'

import { oneOf } from '../../../../test/support/long-run.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import type { SseTransport } from '../../src/client/index.ts'
import { webSocketTransport, sseTransport } from '../../src/client/index.ts'
import { apiKey, browserTool, callAddress, ProtocolError } from '../../src/server/index.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { whole, untilAsked } from '../live/support/live-test-bridge.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { Browser, codeOf } from '../support/browser.ts'
import { type ChatMessage, textOf, toolParts } from '../support/chat-probe.ts'
import { clients } from '../support/clients.ts'
import { type ServeOptions, serve, type TestServer } from '../support/serve.ts'
import type { ChatSummary } from '../../src/protocol/server-views.ts'
import type { AgentChoice } from '../../src/server/chats/chat-agents.ts'

const PEOPLE = { hanako: { id: 'hanako', attributes: { team: 'sales' } }, taro: { id: 'taro' } }

/** The agents whose tools have run, in order. */
type Done = string[]

interface Team {
  /** The agents that the bridge has, the default one first. */
  readonly names?: readonly string[]
  /** The agents whose `pay` needs no approval. */
  readonly lax?: readonly string[]
  readonly tools?: (name: string) => readonly BaseTool[]
}

/** Agents with different tools of the same name. */
function team(done: Done, { names = ['support', 'sales'], lax = [], tools }: Team = {}) {
  const pay = (name: string): BaseTool =>
    new FunctionTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({}),
      requireConfirmation: !lax.includes(name),
      execute: () => {
        done.push(name)
        return { paidBy: name }
      },
    })
  return (model: BaseLlm) => {
    const toAgent = (name: string): LlmAgent =>
      new LlmAgent({
        name: `${name}_agent`,
        model,
        instruction: `I am ${name}.`,
        tools: [pay(name), ...(tools?.(name) ?? [])],
      })
    return Object.fromEntries(names.map((name) => [name, toAgent(name)]))
  }
}

interface Opened extends Team, Omit<ServeOptions, 'agents' | 'agent'> {
  readonly done: Done
  readonly store: Store
}

function open({ done, names, lax, tools, ...options }: Opened): Promise<TestServer> {
  const given = { ...(names && { names }), ...(lax && { lax }), ...(tools && { tools }) }
  const authenticate = apiKey(PEOPLE)
  const limits = { sweepMs: 20 }
  return serve({ agents: team(done, given), authenticate, limits, ...options })
}

/** A person at a server, authenticated by an API key. */
class Caller extends Browser {
  readonly #key: string

  constructor({ url }: { readonly url: string }, key = 'hanako') {
    super(url)
    this.#key = key
  }

  override post(path: string, body?: unknown): Promise<Response> {
    return super.post(path, body, { 'x-api-key': this.#key })
  }

  override get(path: string): Promise<Response> {
    return super.get(path, { 'x-api-key': this.#key })
  }

  override delete(id = 'chat-1'): Promise<Response> {
    const headers = { 'x-api-key': this.#key }
    return this.fetch(`${this.url}/chats/${id}`, { method: 'DELETE', headers })
  }

  async chats(): Promise<[id: string, agent: string | undefined][]> {
    const { chats } = (await (await this.get('/chats')).json()) as { chats: ChatSummary[] }
    return chats.map(({ id, agent }) => [id, agent])
  }

  async pending(): Promise<string[]> {
    return (await this.#approvals()).map(({ id }) => id)
  }

  async pendingIn(chat: string): Promise<string> {
    return (await this.#approvals()).find(({ chatId }) => chatId === chat)?.id ?? ''
  }

  /** The stored messages of a chat. */
  async stored(id = 'chat-1'): Promise<{ messages: ChatMessage[] }> {
    return (await (await this.get(`/chats/${id}/messages`)).json()) as { messages: ChatMessage[] }
  }

  async lastText(id: string): Promise<string> {
    return textOf((await this.stored(id)).messages.at(-1))
  }

  async outcome(approvalId: string): Promise<string> {
    const response = await this.get(`/approvals/${approvalId}`)
    return ((await response.json()) as { approval: { state: string } }).approval.state
  }

  async #approvals(): Promise<{ id: string; chatId: string }[]> {
    const response = await this.get('/approvals')
    const body = (await response.json()) as { approvals: { id: string; chatId: string }[] }
    return body.approvals
  }
}

const PAY = '[[call pay {}]][[then]][[say Paid.]]'
const SALES = { agent: 'sales' }
const WAIT = { timeout: 120_000 }

/** The agents for which the model was called, in order. */
function voices({ emulator }: TestServer): (string | undefined)[] {
  return emulator.requests.map(({ body }) => /I am (\w+)\./.exec(JSON.stringify(body))?.[1])
}

/** What `new DefaultChatTransport({ headers, body: { agent: 'sales' } })` sends. */
const askSales: typeof globalThis.fetch = (input, init) => {
  const headers = new Headers(init?.headers)
  headers.set('x-api-key', 'hanako')
  const body = JSON.stringify({ ...SALES, ...(JSON.parse(String(init?.body)) as object) })
  return globalThis.fetch(input, { ...init, headers, body })
}

describe.each(oneOf(clients, 'ai 6'))('$name', (client) => {
  test('[RQ180] the `body` of a transport names the agent, and the chat keeps it', async () => {
    const done: Done = []
    await using store = await openSqliteStore({ path: ':memory:' })
    await using server = await open({ done, store })
    const chat = client.openChat({ id: 'chat-1', api: `${server.url}/stream`, fetch: askSales })
    await chat.send('[[say Hello.]]')
    await chat.send('[[say Again.]]')
    expect(chat.text).toBe('Again.')
    const caller = new Caller(server)
    await (await caller.say('[[say More.]]')).text()
    expect(voices(server)).toEqual(['sales', 'sales', 'sales'])
  })
})

test('[RQ180] [CV6] the body, the URL or the default selects the agent of a new chat', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  await using server = await open({ done: [], store })
  const caller = new Caller(server)
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: '[[say Hi.]]' }] }
  await (await caller.say('[[say Hi.]]', 'by-default')).text()
  await (await caller.say('[[say Hi.]]', 'by-body', SALES)).text()
  const addressed = { id: 'by-address', messages: [message] }
  await (await caller.post('/stream?agent=sales', addressed)).text()
  const both = { id: 'by-both', messages: [message], agent: 'support' }
  await (await caller.post('/stream?agent=sales', both)).text()
  // The agent in the URL applies to new chats only, because the URL is the same for all chats of a client.
  const known = { id: 'by-default', messages: [{ ...message, id: 'u2' }] }
  await (await caller.post('/stream?agent=sales', known)).text()
  expect(voices(server)).toEqual(['support', 'sales', 'sales', 'support', 'support'])
  expect(Object.fromEntries(await caller.chats())).toEqual({
    'by-default': 'support',
    'by-body': 'sales',
    'by-address': 'sales',
    'by-both': 'support',
  })
})

test('[CV6] a bridge with one agent names none, and ignores `agent` in a body', async () => {
  await using server = await serve()
  const browser = server.browser()
  await (await browser.say('[[say Hi.]]', 'chat-1', { agent: { any: 'thing' } })).text()
  const { chats } = (await (await browser.get('/chats')).json()) as { chats: object[] }
  expect(chats).toHaveLength(1)
  expect(chats[0]).not.toHaveProperty('agent')
})

test.each(['unknown', '', '__proto__', 'constructor', 'toString', 5, ['sales'], null])(
  '[RQ181] the agent %j is rejected without the names of others, and no chat is created',
  async (agent) => {
    await using store = await openSqliteStore({ path: ':memory:' })
    await using server = await open({ done: [], store })
    const caller = new Caller(server)
    const response = await caller.say('[[say Hi.]]', 'chat-1', { agent })
    expect(response.status).toBe(400)
    const text = await response.text()
    expect(text).toContain('bad-request')
    expect(text).not.toMatch(/support|sales/)
    expect(await caller.chats()).toEqual([])
    await (await caller.say('[[say Hi.]]', 'chat-1', SALES)).text()
    expect(await caller.chats()).toEqual([['chat-1', 'sales']])
    expect(server.errors).toEqual([])
  },
)

test('[RQ182] `chooseAgent` chooses once for each chat, by the person and the request', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const asked: AgentChoice[] = []
  const chooseAgent = async (choice: AgentChoice): Promise<string> => {
    asked.push(choice)
    return choice.principal.attributes?.['team'] === 'sales' ? 'sales' : 'support'
  }
  await using server = await open({ done: [], store, chooseAgent })
  const [hanako, taro] = [new Caller(server), new Caller(server, 'taro')]
  await (await hanako.say('[[say Hi.]]', 'chat-1', { agent: 'whatever', page: '/cart' })).text()
  // The agent that the client names is a suggestion. `chooseAgent` decides.
  await (await hanako.say('[[say Hi.]]', 'chat-1', { agent: 'support' })).text()
  await (await taro.say('[[say Hi.]]', 'chat-1', SALES)).text()
  expect(voices(server)).toEqual(['sales', 'sales', 'support'])
  expect(asked).toMatchObject([
    {
      principal: { id: 'hanako' },
      chatId: 'chat-1',
      agent: 'whatever',
      body: { agent: 'whatever', page: '/cart' },
    },
    { principal: { id: 'taro' }, agent: 'sales' },
  ])
})

const SECRET = 'postgres://admin:secret@db'
test.each<[name: string, choose: () => string | Promise<string>, status: number]>([
  [
    'throws',
    () => {
      throw new Error(SECRET)
    },
    500,
  ],
  ['rejects', () => Promise.reject(new Error(SECRET)), 500],
  ['names an unknown agent', () => SECRET, 500],
  // A JavaScript program may return this.
  ['answers nothing', () => undefined as unknown as string, 500],
  [
    'refuses in its own words',
    () => {
      throw new ProtocolError('bad-request', { message: 'Choose a team first.' })
    },
    400,
  ],
])(
  '[RQ182] no turn starts if `chooseAgent` %s, and the client gets no details',
  async (_n, choose, status) => {
    await using store = await openSqliteStore({ path: ':memory:' })
    await using server = await open({ done: [], store, chooseAgent: choose })
    const caller = new Caller(server)
    const response = await caller.say('[[say Hi.]]')
    expect(response.status).toBe(status)
    expect(await response.text()).not.toContain('secret')
    expect(server.emulator.requests).toEqual([])
    expect(await caller.chats()).toEqual([])
    const reported = status === 500 ? /^`chooseAgent`|secret/ : /^$/
    expect(server.errors.map(reasonOf).join('\n')).toMatch(reported)
  },
)

test('[RQ183] a client cannot move a chat or its pending approvals to another agent', async () => {
  const done: Done = []
  await using store = await openSqliteStore({ path: ':memory:' })
  await using server = await open({ done, store, lax: ['sales'] })
  const caller = new Caller(server)
  await (await caller.say(PAY)).text()
  const [id = ''] = await caller.pending()
  const { messages } = await caller.stored()
  const moved = await caller.say('[[say Hi.]]', 'chat-1', SALES)
  expect([moved.status, await codeOf(moved)]).toEqual([409, 'other-agent'])
  const replaced = await caller.post('/stream', {
    id: 'chat-1',
    messages: messages.slice(0, 1),
    trigger: 'regenerate-message',
    ...SALES,
  })
  expect(await codeOf(replaced)).toBe('other-agent')
  expect(done).toEqual([])
  expect(await caller.pending()).toEqual([id])
  // A decision uses the agent of the chat, whatever the body names.
  const part = { type: 'dynamic-tool', state: 'approval-responded', toolName: 'pay' }
  const decided = [{ ...part, toolCallId: 'c1', approval: { id, approved: true } }]
  const answer = { id: messages.at(-1)?.id, role: 'assistant', parts: decided }
  await (
    await caller.post('/stream?agent=sales', { id: 'chat-1', messages: [answer], ...SALES })
  ).text()
  expect(done).toEqual(['support'])
  expect(new Set(voices(server))).toEqual(new Set(['support']))
})

test('[RQ183] of two concurrent first messages on two servers, one selects the agent', async () => {
  await using folder = await temporaryDirectory()
  await using one = await openSqliteStore({ path: folder.file('chat.db') })
  await using two = await openSqliteStore({ path: folder.file('chat.db') })
  // The second message waits for the first one instead of being rejected.
  const whileRunning = 'queue'
  await using first = await open({ done: [], store: one, whileRunning })
  await using second = await open({ done: [], store: two, whileRunning })
  const [here, there] = [new Caller(first), new Caller(second)]
  await Promise.all([here.chats(), there.chats()])
  const answers = await Promise.all([
    here.say('[[say Hi.]]', 'chat-1', { agent: 'support' }),
    there.say('[[say Hi.]]', 'chat-1', SALES),
  ])
  const texts = await Promise.all(answers.map((answer) => answer.text()))
  expect(texts.filter((text) => text.includes('"other-agent"'))).toHaveLength(1)
  const asked = [...voices(first), ...voices(second)]
  expect(asked).toHaveLength(1)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]))
  expect(await here.chats()).toEqual([['chat-1', asked[0]]])
})

test('[RQ180] after a restart, an approval runs the tool of the agent that asked, once', async () => {
  const done: Done = []
  await using folder = await temporaryDirectory()
  const path = folder.file('chat.db')
  {
    await using store = await openSqliteStore({ path })
    await using server = await open({ done, store })
    const caller = new Caller(server)
    await (await caller.say(PAY, 'a')).text()
    await (await caller.say(PAY, 'b', SALES)).text()
  }
  await using store = await openSqliteStore({ path })
  // In another order: the agent of a chat does not depend on which one is the first.
  await using server = await open({ done, store, names: ['sales', 'support'] })
  const caller = new Caller(server)
  for (const [chatId, name] of [
    ['b', 'sales'],
    ['a', 'support'],
  ] as const) {
    const id = await caller.pendingIn(chatId)
    expect((await caller.post(`/approvals/${id}`, { approved: true })).status).toBe(200)
    await vi.waitFor(async () => expect(await caller.outcome(id)).toBe('succeeded'), WAIT)
    expect(done.at(-1)).toBe(name)
  }
  await vi.waitFor(async () => expect(await caller.lastText('a')).toBe('Paid.'), WAIT)
  expect(done).toEqual(['sales', 'support'])
  expect(server.errors).toEqual([])
})

test('[RQ180] a call that was approved and not run before a crash is run by the right agent', async () => {
  const done: Done = []
  await using folder = await temporaryDirectory()
  const path = folder.file('chat.db')
  {
    await using store = await openSqliteStore({ path })
    await using server = await open({ done, store })
    await (await new Caller(server).say(PAY, 'chat-1', SALES)).text()
  }
  await using store = await openSqliteStore({ path })
  const id = await approveAndDie(store, 'chat-1')
  await using server = await open({ done, store })
  const caller = new Caller(server)
  // The first request opens the database.
  await vi.waitFor(async () => expect(await caller.outcome(id)).toBe('succeeded'), WAIT)
  expect(done).toEqual(['sales'])
})

test('[RQ180] a decision at another server runs the tool of the right agent, once', async () => {
  const done: Done = []
  await using folder = await temporaryDirectory()
  await using one = await openSqliteStore({ path: folder.file('chat.db') })
  await using two = await openSqliteStore({ path: folder.file('chat.db') })
  // The asking server does not sweep, so the other one has to run the call.
  await using first = await open({ done, store: one, limits: { sweepMs: 3_600_000 } })
  await using second = await open({ done, store: two, names: ['sales', 'support'] })
  const [here, there] = [new Caller(first), new Caller(second)]
  await (await here.say(PAY)).text()
  const [id = ''] = await there.pending()
  await there.post(`/approvals/${id}`, { approved: true })
  await here.post(`/approvals/${id}`, { approved: true })
  await vi.waitFor(async () => expect(await there.lastText('chat-1')).toBe('Paid.'), WAIT)
  expect(done).toEqual(['support'])
})

test('[RQ180] results of browser tools and of the application go to the agent of the chat', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const calls: Parameters<TestServer['bridge']['completeCall']>[0][] = []
  const tools = (name: string): BaseTool[] => {
    if (name !== 'sales') return []
    const locate = browserTool({ name: 'locate', description: 'Where.', parameters: z.object({}) })
    const job = new LongRunningFunctionTool({
      name: 'job',
      description: 'Takes long.',
      parameters: z.object({}),
      execute: (_args, context) => {
        if (context) calls.push({ ...callAddress(context), output: { done: true } })
      },
    })
    return [locate, job]
  }
  await using server = await open({ done: [], store, tools })
  const caller = new Caller(server)
  await (await caller.say('[[call locate {}]][[then]][[say Found.]]', 'a', SALES)).text()
  const message = (await caller.stored('a')).messages.at(-1)
  const [part] = toolParts(message)
  const parts = [{ ...part, state: 'output-available', output: { city: 'Tokyo' } }]
  await (await caller.post('/stream', { id: 'a', messages: [{ ...message, parts }] })).text()
  expect(await caller.lastText('a')).toBe('Found.')
  await (await caller.say('[[call job {}]][[then]][[say Done.]]', 'b', SALES)).text()
  const [call] = calls
  if (!call) throw new Error('The job was not called.')
  await server.bridge.completeCall(call)
  await vi.waitFor(async () => expect(await caller.lastText('b')).toBe('Done.'), WAIT)
  expect(new Set(voices(server))).toEqual(new Set(['sales']))
})

test('[RQ184] a chat whose agent no longer exists can be read, rejects messages, and continues when the agent is back', async () => {
  const done: Done = []
  await using folder = await temporaryDirectory()
  const path = folder.file('chat.db')
  {
    await using store = await openSqliteStore({ path })
    await using server = await open({ done, store, lax: ['support'] })
    const caller = new Caller(server)
    await (await caller.say(PAY, 'given', SALES)).text()
    await (await caller.say(PAY, 'waiting', SALES)).text()
  }
  {
    await using store = await openSqliteStore({ path })
    const given = await approveAndDie(store, 'given')
    await using server = await open({ done, store, lax: ['support'], names: ['support'] })
    const caller = new Caller(server)
    const waiting = await caller.pendingIn('waiting')
    const refused = [
      await caller.say('[[say Hi.]]', 'waiting'),
      await caller.say('[[say Hi.]]', 'waiting', { agent: 'support' }),
      await caller.post(`/approvals/${waiting}`, { approved: true }),
      await caller.post(`/approvals/${waiting}`, { approved: false }),
    ]
    for (const response of refused)
      expect([response.status, await codeOf(response)]).toEqual([409, 'unknown-agent'])
    expect(Object.fromEntries(await caller.chats())).toEqual({ given: 'sales', waiting: 'sales' })
    expect((await caller.stored('waiting')).messages).toHaveLength(2)
    // The sweeps report it once, and leave the approval unchanged.
    await vi.waitFor(() => expect(server.errors.map(reasonOf)).toEqual([LEFT]), WAIT)
    expect(await caller.outcome(given)).toBe('approved')
    expect(done).toEqual([])
  }
  await using store = await openSqliteStore({ path })
  await using server = await open({ done, store })
  const caller = new Caller(server)
  await vi.waitFor(async () => expect(await caller.lastText('given')).toBe('Paid.'), WAIT)
  const waiting = await caller.pendingIn('waiting')
  expect((await caller.post(`/approvals/${waiting}`, { approved: true })).status).toBe(200)
  await vi.waitFor(() => expect(done).toEqual(['sales', 'sales']), WAIT)
})

test('[RQ184] a chat whose agent no longer exists can be deleted, and created again with another agent', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  {
    await using server = await open({ done: [], store })
    await (await new Caller(server).say('[[say Hi.]]', 'chat-1', SALES)).text()
  }
  await using server = await open({ done: [], store, names: ['support'] })
  const caller = new Caller(server)
  expect((await caller.delete()).status).toBe(204)
  await (await caller.say('[[say Hi.]]')).text()
  expect(await caller.chats()).toEqual([['chat-1', 'support']])
})

test('[RQ181] chats from before the bridge had several agents have the first one', async () => {
  const done: Done = []
  await using store = await openSqliteStore({ path: ':memory:' })
  {
    const agent = (model: BaseLlm): LlmAgent => {
      const { support } = team(done)(model)
      if (!support) throw new Error('There is support.')
      return support
    }
    const authenticate = apiKey(PEOPLE)
    await using server = await serve({ agent, store, authenticate })
    await (await new Caller(server).say(PAY)).text()
  }
  await using server = await open({ done, store, lax: ['sales'] })
  const caller = new Caller(server)
  const moved = await caller.say('[[say Hi.]]', 'chat-1', SALES)
  expect(await codeOf(moved)).toBe('other-agent')
  const id = await caller.pendingIn('chat-1')
  await caller.post(`/approvals/${id}`, { approved: true })
  await vi.waitFor(async () => expect(await caller.lastText('chat-1')).toBe('Paid.'), WAIT)
  expect(done).toEqual(['support'])
  expect(await caller.chats()).toEqual([['chat-1', 'support']])
})

test('[RQ180] the agent of a chat is stored, also with a session service of the application', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const sessionService = new InMemorySessionService()
  const done: Done = []
  {
    await using server = await open({ done, store, sessionService })
    await (await new Caller(server).say(PAY, 'chat-1', SALES)).text()
  }
  await using server = await open({ done, store, sessionService })
  const caller = new Caller(server)
  await caller.post(`/approvals/${await caller.pendingIn('chat-1')}`, { approved: true })
  await vi.waitFor(async () => expect(await caller.lastText('chat-1')).toBe('Paid.'), WAIT)
  expect(done).toEqual(['sales'])
})

test.each([
  ['one for all chats', 'sales'],
  ['one for each chat', (chatId: string) => (chatId === 'chat-1' ? 'sales' : undefined)],
] as const)('[CL180] the client library names an agent: %s', async (_name, agent) => {
  await using store = await openSqliteStore({ path: ':memory:' })
  await using server = await open({ done: [], store })
  const headers = { 'x-api-key': 'hanako' }
  const transport = sseTransport({ url: server.url, headers, agent })
  await readAll(await transport.sendMessages(toSend('chat-1', '[[say Hi.]]')))
  const other = toSend('chat-2', '[[say Hi.]]')
  await readAll(await transport.sendMessages({ ...other, body: { agent: 'support' } }))
  expect(voices(server)).toEqual(['sales', 'support'])
  const chats = await transport.api.listChats()
  expect(chats.map((chat) => chat.agent)).toEqual(['support', 'sales'])
})

const live: ServeOptions['live'] = (model) => ({
  model,
  runConfig: { responseModalities: [Modality.TEXT] },
})

describe('live', () => {
  const headers = { 'x-api-key': 'hanako' }

  test('[LV180] a message, a frame and the URL of the socket select the agent of a new chat', async () => {
    const done: Done = []
    await using store = await openSqliteStore({ path: ':memory:' })
    await using server = await open({ done, store, live, lax: ['support', 'sales'] })
    await using client = await SocketClient.open(server.url, { headers })
    const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: PAY }] }
    const send = { type: 'send', trigger: 'submit-message', messages: [message] }
    client.send({ ...send, requestId: 'r1', id: 'sent', body: SALES })
    expect(await whole(client, 'r1')).toBe('Paid.')
    client.send({ type: 'watch', id: 'watched', ...SALES })
    client.send({ ...send, requestId: 'r2', id: 'watched' })
    expect(await whole(client, 'r2')).toBe('Paid.')
    client.send({ ...send, requestId: 'r3', id: 'unnamed' })
    expect(await whole(client, 'r3')).toBe('Paid.')
    await using named = await SocketClient.open(server.url, { headers, query: '?agent=sales' })
    named.send({ type: 'watch', id: 'addressed' })
    named.send({ type: 'text', id: 'addressed', text: PAY })
    const { requestId } = await named.nextOf('turn')
    expect(await whole(named, requestId)).toBe('Paid.')
    expect(done).toEqual(['sales', 'sales', 'support', 'sales'])
    const chats = Object.fromEntries(await new Caller(server).chats())
    expect(chats).toEqual({
      sent: 'sales',
      watched: 'sales',
      unnamed: 'support',
      addressed: 'sales',
    })
  })

  test('[CL180] the client library names an agent in messages, in text and when it only watches', async () => {
    const done: Done = []
    await using store = await openSqliteStore({ path: ':memory:' })
    await using server = await open({ done, store, live, lax: ['support', 'sales'] })
    class KeySocket extends WebSocket {
      constructor(url: string | URL, protocols?: string | string[]) {
        super(url, protocols, { headers })
      }
    }
    const url = `${server.url.replace('http', 'ws')}/live`
    const transport = webSocketTransport({ url, webSocket: KeySocket, agent: 'sales' })
    await readAll(await transport.sendMessages(toSend('sent', PAY)))
    transport.watch('watched')
    await vi.waitFor(() => expect(server.emulator.live.sessions).toHaveLength(2), WAIT)
    transport.sendText('said', PAY)
    await vi.waitFor(() => expect(done).toEqual(['sales', 'sales']), WAIT)
    const caller = new Caller(server)
    await (await caller.say(PAY, 'watched')).text()
    expect(done).toEqual(['sales', 'sales', 'sales'])
    transport.close()
  })

  test('[LV180] an unknown agent and another agent than that of the chat are rejected', async () => {
    await using store = await openSqliteStore({ path: ':memory:' })
    await using server = await open({ done: [], store, live })
    await using client = await SocketClient.open(server.url, { headers })
    const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: '[[say Hi.]]' }] }
    const send = { type: 'send', trigger: 'submit-message', messages: [message], id: 'chat-1' }
    client.send({ ...send, requestId: 'r1', body: { agent: 'unknown' } })
    expect(await client.nextOf('error', 'r1')).toMatchObject({ code: 'bad-request' })
    client.send({ ...send, requestId: 'r2', body: SALES })
    await whole(client, 'r2')
    client.send({ ...send, requestId: 'r3', body: { agent: 'support' } })
    expect(await client.nextOf('error', 'r3')).toMatchObject({ code: 'other-agent' })
    client.send({ type: 'watch', id: 'chat-2', agent: 'unknown' })
    expect(await client.nextOf('refused')).toMatchObject({ frame: 'watch', code: 'bad-request' })
    expect(await new Caller(server).chats()).toEqual([['chat-1', 'sales']])
  })

  test('[LV180] [RQ180] after a restart, an approval of a live conversation runs the tool of its agent, and so do later calls', async () => {
    const done: Done = []
    await using store = await openSqliteStore({ path: ':memory:' })
    {
      await using server = await open({ done, store, live })
      await using client = await SocketClient.open(server.url, { headers, query: '?agent=sales' })
      client.say(PAY)
      await untilAsked(client)
    }
    await using server = await open({ done, store, live })
    const caller = new Caller(server)
    await caller.post(`/approvals/${await caller.pendingIn('chat-1')}`, { approved: true })
    await vi.waitFor(() => expect(done).toEqual(['sales']), WAIT)
    await using client = await SocketClient.open(server.url, { headers })
    client.say(PAY, 'r2')
    const [id] = await untilAsked(client, 1, 'r2')
    client.send({ type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId: id, approved: true })
    await vi.waitFor(() => expect(done).toEqual(['sales', 'sales']), WAIT)
  })
})

/** Decides as a process does that is killed before it runs the call. */
async function approveAndDie(store: Store, chatId: string): Promise<string> {
  const ledger = new Ledger({ store: store.approvals, appName: 'adk-stream-protocol' })
  const pending = await ledger.list({ states: ['requested'], limit: 9 })
  const asked = pending.find(({ chat }) => chat.chatId === chatId)
  await ledger.decide(asked?.id ?? '', { by: { id: 'hanako', roles: [] }, approved: true })
  return asked?.id ?? ''
}

/** A message as `useChat` passes it to a transport. */
function toSend(chatId: string, text: string): Parameters<SseTransport['sendMessages']>[0] {
  const message = { id: crypto.randomUUID(), role: 'user' as const }
  const messages = [{ ...message, parts: [{ type: 'text' as const, text }] }]
  const trigger = 'submit-message' as const
  return { chatId, trigger, messageId: undefined, messages, abortSignal: undefined }
}

async function readAll(stream: ReadableStream): Promise<void> {
  await stream.pipeTo(new WritableStream())
}

/** The messages of an error and its causes. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error
  return cause instanceof Error ? cause.message : message
}

const LEFT =
  'Calls of the agent sales are pending, and this bridge does not have the agent. They stay pending. Add it to `agents`.'

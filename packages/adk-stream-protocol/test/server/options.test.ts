// oxlint-disable typescript/no-deprecated -- LoopAgent is deprecated in favour of Workflow, and in use.
import type { BaseTool, InvocationContext } from '@google/adk'
import {
  AgentTool,
  App,
  BaseToolset,
  FunctionTool,
  Gemini,
  InMemorySessionService,
  LlmAgent,
  LoopAgent,
  Workflow,
} from '@google/adk'
import { expect, test } from 'vitest'

import type { BridgeOptions } from '../../src/server/index.ts'
import { createBridge } from '../../src/server/index.ts'
import { assistant } from '../support/agents.ts'
import { readFrames } from '../support/wire-rules.ts'
import { serve } from '../support/serve.ts'

const agent = new LlmAgent({ name: 'assistant', model: 'gemini-2.5-flash' })

const inner = new LlmAgent({ name: 'inner', model: 'gemini-2.5-flash' })
const outer = new LlmAgent({
  name: 'outer',
  model: 'gemini-2.5-flash',
  tools: [new AgentTool({ agent: inner })],
})

const TWINS = ['Pays.', 'Pays too.'].map(
  (description) => new FunctionTool({ name: 'pay', description, execute: () => ({}) }),
)

/** What a JavaScript program may pass, whatever the types say. */
function create(options: object): void {
  createBridge({ ...('agents' in options ? {} : { agent }), ...options } as BridgeOptions)
}

test.each<[name: string, options: object, sentence: string]>([
  ['a typo', { aproval: {} }, 'there is no option `aproval`. Did you mean `approvals`?'],
  ['an unknown option', { color: 'red' }, 'there is no option `color`.'],
  [
    'an unknown limit',
    { limits: { maxBodyByte: 1 } },
    'there is no option `limits.maxBodyByte`. Did you mean `maxBodyBytes`?',
  ],
  [
    'a negative limit',
    { limits: { maxQueued: -1 } },
    '`limits.maxQueued` must be a number of at least 0',
  ],
  ['a limit in words', { limits: { maxParts: '64' } }, '`limits.maxParts` must be a whole number'],
  ['a limit of NaN', { limits: { maxBodyBytes: NaN } }, '`limits.maxBodyBytes` must be a whole'],
  ['a duration below 0', { disconnectGraceMs: -1 }, '`disconnectGraceMs` must be a number of mill'],
  ['a duration of NaN', { approvalDeadlineMs: NaN }, '`approvalDeadlineMs` must be a number of'],
  ['no deadline', { approvalDeadlineMs: 0 }, '`approvalDeadlineMs` must be'],
  [
    'a duration that no timer can hold',
    { limits: { sweepMs: 2 ** 31 } },
    '`limits.sweepMs` must be at most 2147483647 milliseconds',
  ],
  ['retention in days', { retention: { chats: '365d' } }, 'no option `retention.chats`. Did you'],
  ['retention of 0', { retention: { auditMs: 0 } }, '`retention.auditMs` must be a number of mill'],
  [
    'retention of chats that are stored elsewhere',
    { retention: { chatsMs: 1 }, sessionService: new InMemorySessionService() },
    '`retention.chatsMs` removes chats from the store, but `sessionService`',
  ],
  [
    'a deadline that is no date',
    { approvalDeadlineMs: Number.MAX_SAFE_INTEGER },
    '`approvalDeadlineMs` must be at most 315360000000 milliseconds (10 years)',
  ],
  ['no lease', { limits: { leaseMs: 0 } }, '`limits.leaseMs` must be'],
  ['a word of another option', { whilePending: 'queue' }, "must be 'keep' or 'cancel'"],
  ['live as a switch', { live: true }, '`live` must be'],
  ['a typo in live', { live: { grace: 1 } }, 'no option `live.grace`. Did you mean `graceMs`?'],
  ['a typo in runConfig', { runConfig: { maxLLMCall: 1 } }, 'Did you mean `maxLlmCalls`?'],
  ['unbounded model calls', { runConfig: { maxLlmCalls: 0 } }, '`runConfig.maxLlmCalls` must be'],
  ['any origin', { allowedOrigins: ['*'] }, 'has "*". Wildcards are not supported'],
  ['a pattern', { allowedOrigins: ['https://*.example'] }, 'list each origin'],
  [
    'an origin with a path',
    { allowedOrigins: ['https://app.example/chat'] },
    'An origin has no path: use "https://app.example"',
  ],
  ['a host without a scheme', { allowedOrigins: ['app.example'] }, 'is not an origin'],
  ['one origin in place of a list', { allowedOrigins: 'https://app.example' }, 'a list of origins'],
  ['a path without a slash', { basePath: 'api' }, '`basePath` must be a path that starts with'],
  ['an observer that is none', { onError: 'console' }, '`onError` must be a function'],
  ['approvals as a list', { approvals: ['pay'] }, '`approvals` must be a function, or an object'],
  [
    'a required preview without a preview',
    { approvals: { pay: { requirePreview: true } } },
    '`approvals.pay.requirePreview` needs `preview`',
  ],
  [
    'a preview that is no function',
    { approvals: { pay: { preview: 'soon' } } },
    '`approvals.pay.preview`',
  ],
  ['an approval in words', { approvals: { pay: 'yes' } }, '`approvals.pay` must be true, false'],
  [
    'a typo in terms',
    { approvals: { pay: { requierd: false } } },
    'there is no option `approvals.pay.requierd`. Did you mean `required`?',
  ],
  [
    'a payment that two owners of the chat approve',
    { approvals: { pay: { approvers: 2 } } },
    '`approvals.pay` can never be approved',
  ],
  [
    'a chain that needs one person twice',
    { approvals: { pay: { chain: [{ principals: ['ann'] }, { principals: ['ann'] }] } } },
    '`approvals.pay` can never be approved',
  ],
  [
    'two tools of one name',
    { agent: new LlmAgent({ name: 'twins', model: 'gemini-x', tools: TWINS }) },
    'the agent twins has two tools with the name pay.',
  ],
  [
    'a live model that cannot talk',
    { live: { model: new Gemini({ model: 'models/gemini-2.5-flash', apiKey: 'a key' }) } },
    'gemini-2.5-flash has no live sessions. Pass `live.model`',
  ],
  [
    'an agent as tool with the name of the application',
    { appName: 'inner', agent: outer },
    'choose another name',
  ],
  ['no agent', { agent: undefined }, 'createBridge needs `agent`'],
  ['a name as agent', { agent: 'hi' }, '`agent` is a string. Pass an ADK agent'],
  ['a plain object as agent', { agent: {} }, 'ADK cannot run. Pass an ADK agent'],
  [
    'an App as agent',
    { agent: new App({ name: 'app', rootAgent: agent }) },
    'Pass `agent: app.rootAgent`',
  ],
  ['one agent beside several', { agent, agents: { a: agent } }, 'either `agent` or `agents`'],
  ['no agents', { agents: {} }, '`agents` is empty'],
  ['a list of agents', { agents: [agent] }, 'an object that maps names to agents'],
  ['an agent as agents', { agents: agent }, 'an object that maps names to agents'],
  ['an agent that is none among several', { agents: { a: agent, b: {} } }, '`agents.b` is an obj'],
  ['a number as the name of an agent', { agents: { 1: agent } }, 'has the name "1"'],
  ['a name that is too long', { agents: { ['a'.repeat(65)]: agent } }, 'at most 64'],
  ['a choice of nothing', { chooseAgent: () => 'a' }, '`chooseAgent` needs `agents`'],
  ['a choice in words', { agents: { a: agent }, chooseAgent: 'a' }, '`chooseAgent` must be a func'],
  [
    'a record of agents that is lost with the process',
    { agents: { a: agent }, sessionService: new InMemorySessionService() },
    'needs a `store`',
  ],
])('[ER110] %s is rejected by createBridge', (_name, options, sentence) => {
  expect(() => create(options)).toThrow(TypeError)
  expect(() => create(options)).toThrow(sentence)
})

test.each(['gemini-2.0-flash-live-001', 'gemini-2.0-flash-exp', 'gemini-9-live', 'my-own-model'])(
  '[ER110] the live model %s is accepted',
  (model) => {
    expect(() => create({ live: { model: new Gemini({ model, apiKey: 'a key' }) } })).not.toThrow()
  },
)

test('[ER110] undefined options, and URLs with a trailing slash, are accepted', async () => {
  await using server = await serve({
    limits: JSON.parse('{}') as object,
    allowedOrigins: ['https://app.example/', 'HTTPS://Other.example:443'],
  })
  for (const origin of ['https://app.example', 'https://other.example']) {
    const { headers, status } = await fetch(`${server.url}/health`, { headers: { origin } })
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, origin])
  }
  // An undefined limit has its default.
  expect(() => create({ limits: { maxBodyBytes: undefined }, live: undefined })).not.toThrow()
})

test('[AP111] a policy for a tool that the agent does not have is rejected', () => {
  const pay = new FunctionTool({ name: 'process_payment', description: '', execute: () => ({}) })
  const payer = new LlmAgent({ name: 'payer', model: 'gemini-2.5-flash', tools: [pay] })
  const root = new LlmAgent({ name: 'root', model: 'gemini-2.5-flash', subAgents: [payer] })
  const typo = { agent: root, approvals: { proces_payment: true } }
  expect(() => create(typo)).toThrow(
    'names the tool proces_payment, which the agent does not have. Did you mean `process_payment`?',
  )
  expect(() => create({ agent: root, approvals: { refund: false } })).toThrow(/refund, which/)
  expect(() =>
    create({ agent: root, approvals: { process_payment: true, transfer_to_agent: true } }),
  ).not.toThrow()
})

/** A loop that runs its steps in its own way, and so cannot wait. */
class OwnLoop extends LoopAgent {
  protected override runAsyncImpl(context: InvocationContext) {
    return super.runAsyncImpl(context)
  }
}

test('[AP111] every agent of several is checked, and a policy is for a tool of any of them', () => {
  const pay = new FunctionTool({ name: 'pay', description: '', execute: () => ({}) })
  const payer = new LlmAgent({ name: 'payer', model: 'gemini-2.5-flash', tools: [pay] })
  const nested = new LlmAgent({
    name: 'nested',
    model: 'gemini-2.5-flash',
    tools: [new AgentTool({ agent: payer.clone() })],
  })
  const loop = new OwnLoop({ name: 'loop', subAgents: [payer.clone()] })
  const policy = { approvals: { pay: true } }
  expect(() => create({ agents: { a: agent, b: payer }, ...policy })).not.toThrow()
  expect(() => create({ agents: { a: agent, b: inner }, ...policy })).toThrow(/pay, which/)
  expect(() => create({ agents: { a: agent, b: nested }, ...policy })).not.toThrow()
  expect(() => create({ agents: { a: payer, b: loop }, ...policy })).toThrow(/needs approval/)
  expect(() => create({ agents: { a: agent, b: outer }, appName: 'inner' })).toThrow(/another name/)
})

test('[LV180] with several agents and the option `live`, all of them must support it', () => {
  const live = { model: new Gemini({ model: 'gemini-live', apiKey: 'a key' }) }
  const flow = new Workflow({ name: 'flow', edges: [['START', agent]] })
  expect(() => create({ agents: { a: agent, b: inner }, live })).not.toThrow()
  expect(() => create({ agents: { a: agent, b: flow } })).not.toThrow()
  expect(() => create({ agents: { a: agent, b: flow }, live })).toThrow(/`live` needs an agent/)
})

/** A toolset like that of an MCP server: its tools are known when they are listed. */
class Payments extends BaseToolset {
  readonly #runs: string[]
  listings = 0

  constructor(runs: string[]) {
    super([])
    this.#runs = runs
  }

  override async getTools(): Promise<BaseTool[]> {
    this.listings += 1
    const execute = () => {
      this.#runs.push('paid')
      return {}
    }
    return [new FunctionTool({ name: 'process_payment', description: 'Pays.', execute })]
  }

  override async close(): Promise<void> {}
}

test('[AP111] with a toolset, the policy is rejected when the tools are listed, and nothing runs', async () => {
  const runs: string[] = []
  await using server = await serve({
    agent: (model) => assistant(model, { tools: [new Payments(runs)] }),
    approvals: { proces_payment: true },
  })
  const response = await server.browser().say('[[call process_payment {}]][[then]][[say Paid.]]')
  expect(response.status).toBe(500)
  expect(await response.text()).not.toContain('proces_payment')
  expect(String(server.errors)).toContain('Did you mean `process_payment`?')
  expect(runs).toEqual([])
})

test('[AP111] a tool of a toolset is gated by its name, and listed once for that', async () => {
  const runs: string[] = []
  const toolset = new Payments(runs)
  await using server = await serve({
    agent: (model) => assistant(model, { tools: [toolset] }),
    approvals: { process_payment: true },
  })
  const browser = server.browser()
  const { chunks } = readFrames(
    await (await browser.say('[[call process_payment {}]][[then]][[say Paid.]]')).text(),
  )
  expect(chunks.map(({ type }) => type)).toContain('tool-approval-request')
  expect(runs).toEqual([])
})

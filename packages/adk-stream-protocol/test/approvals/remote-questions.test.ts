import type { Part } from '@a2a-js/sdk'
import type { BaseLlm, BaseTool, RunConfig } from '@google/adk'
import { LongRunningFunctionTool, node, RequestInput, SequentialAgent, Workflow } from '@google/adk'
import type { Prompt } from 'gemini-emulator'
import { scriptResponder, startEmulator } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { assistant, EmulatedGemini } from '../support/agents.ts'
import type { A2aServer, RemoteReply } from '../support/a2a-server.ts'
import { serveA2a, serveAdkAgent } from '../support/a2a-server.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { clientsWith, liveClient, stockClient } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { paymentTool, Wallet } from './support/payments.ts'
import { PLACES_BELOW } from './support/remote-places.ts'
import { TestBridge } from './support/test-bridge.ts'

const TOOL = 'adk_request_input'
const say = (text: string): Part => ({ kind: 'text', text })
const QUESTION: RemoteReply = { state: 'input-required', parts: [say('Which city?')] }
const done = (text: string): RemoteReply => ({ state: 'completed', parts: [say(text)] })

/** The places in which a remote agent can wait, with a message that reaches it. */
const PLACES = {
  'the agent of the bridge': {
    agent: (_model: BaseLlm, remote: A2aServer) => remote.agent,
    send: 'Plan a trip.',
  },
  ...PLACES_BELOW,
} as const

const stock = stockClient('7')

describe.each(Object.entries(PLACES))('%s', (place, { agent, send }) => {
  test('[AP590] a remote agent that needs input asks the person, and gets the answer in its task', async () => {
    await using remote = await serveA2a(({ parts }) =>
      JSON.stringify(parts).includes('Kyoto') ? done('Kyoto it is.') : QUESTION,
    )
    await using bridge = await TestBridge.open({
      isLive: false,
      agent: (model) => agent(model, remote),
    })
    const page = bridge.page()
    const chat = await page.open(stock, { autoSend: 'tool-calls' })
    await chat.send(send)
    const [asked] = await page.inbox()
    expect(asked).toMatchObject({
      toolName: TOOL,
      kind: 'input',
      hint: 'Which city?',
      title: 'The remote agent helper asks',
      args: { agent: 'helper', message: 'Which city?' },
    })
    const question = toolParts(chat.lastMessage).find(({ type }) => type === `tool-${TOOL}`)
    expect(question).toMatchObject({ state: 'input-available' })
    expect(textOf(chat.lastMessage)).toBe('')
    const toolCallId = question?.toolCallId ?? ''
    await chat.give({ tool: TOOL, toolCallId, output: 'Kyoto' })
    await chat.rest()
    const [first, second] = remote.received
    expect(remote.received).toHaveLength(2)
    expect(second).toMatchObject({
      parts: [{ kind: 'text', text: 'Kyoto' }],
      taskId: first?.taskId,
      contextId: first?.contextId,
    })
    const isTool = place === 'an agent used as a tool'
    expect(textOf(chat.lastMessage)).toBe(isTool ? 'Planned.' : 'Kyoto it is.')
    expect(bridge.results).toEqual(isTool ? [{ result: 'Kyoto it is.' }] : [])
    expect(await page.history(String(asked?.id))).toEqual([
      'requested',
      'approved',
      'started',
      'succeeded',
    ])
    await expectRecord(page, chat)
    expect(bridge.errors).toEqual([])
    // The conversation continues.
    await chat.send('[[say Bye.]]')
    expect(chat.error).toBeUndefined()
  })
})

test('[AP590] a remote agent that a live model uses as a tool asks the person, and gets the answer', async () => {
  await using remote = await serveA2a(({ parts }) =>
    JSON.stringify(parts).includes('Kyoto') ? done('Kyoto it is.') : QUESTION,
  )
  const { agent, send } = PLACES['an agent used as a tool']
  await using bridge = await TestBridge.open({ agent: (model) => agent(model, remote) })
  const page = bridge.page()
  const chat = await page.open(liveClient, { autoSend: 'tool-calls' })
  await chat.send(send)
  const question = toolParts(chat.lastMessage).find(({ type }) => type === `tool-${TOOL}`)
  expect(question).toMatchObject({ state: 'input-available', input: { message: 'Which city?' } })
  await chat.give({ tool: TOOL, toolCallId: question?.toolCallId ?? '', output: 'Kyoto' })
  await page.untilMessages((messages) => textOf(messages.at(-1)) === 'Planned.')
  expect(remote.received[1]).toMatchObject({
    parts: [{ kind: 'text', text: 'Kyoto' }],
    taskId: remote.received[0]?.taskId,
  })
})

/** ADK's own server with an agent that has tools, and its model. */
async function serveAgent(
  tools: BaseTool[],
  runConfig?: RunConfig,
  onPrompt?: (prompt: Prompt) => void,
) {
  const emulator = await startEmulator({
    respond: (prompt) => {
      onPrompt?.(prompt)
      return scriptResponder(prompt)
    },
  })
  const agent = assistant(new EmulatedGemini(emulator.baseUrl), { tools })
  const remote = await serveAdkAgent(agent, runConfig)
  return {
    agent: remote.agent,
    async [Symbol.asyncDispose]() {
      await remote[Symbol.asyncDispose]()
      await emulator.close()
    },
  }
}

const ALLOWED = { allowRemoteToolConfirmation: true }
const PAY = '[[call process_payment {"amount":50,"recipient":"Hanako"}]][[then]][[say Paid.]]'
const PAYMENT = { amount: 50, recipient: 'Hanako' }

describe.each(clientsWith('6').filter(({ live }) => !live))('$name', (client) => {
  test('[AP591] a call that a remote agent gates is approved by the person, and runs there once', async () => {
    const wallet = new Wallet()
    await using remote = await serveAgent([paymentTool(wallet)], ALLOWED)
    await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    expect(wallet.payments).toEqual([])
    const [id = ''] = chat.asked
    const { approval } = await page.approval(id)
    expect(approval).toMatchObject({
      toolName: 'helper.process_payment',
      title: 'The remote agent helper asks for approval',
      args: PAYMENT,
    })
    expect(approval).not.toHaveProperty('kind')
    // Of many decisions, one is sent.
    await Promise.all([
      chat.decide(true),
      ...Array.from({ length: 5 }, () => page.decide(id, { approved: true })),
    ])
    await page.untilMessages((messages) => textOf(messages.at(-1)) === 'Paid.')
    expect(wallet.payments).toEqual([PAYMENT])
    // The call that the agent showed before it asked says nothing that is no longer true.
    const [shown, asked] = toolParts((await page.messages()).at(-1))
    expect(shown).toMatchObject({ output: { status: 'asked' } })
    expect(asked).toMatchObject({ output: { sent: true } })
    expect(JSON.stringify([shown, asked])).not.toContain('has not run')
    expect(await page.history(id)).toEqual(['requested', 'approved', 'started', 'succeeded'])
    expect(bridge.wallet.payments).toEqual([])
    expect(bridge.errors).toEqual([])
  })
})

test('[AP591] a call that a remote agent gates does not run if the person denies it', async () => {
  const wallet = new Wallet()
  await using remote = await serveAgent([paymentTool(wallet)], ALLOWED)
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send(PAY)
  const [id = ''] = chat.asked
  await chat.decide(false)
  expect(textOf(chat.lastMessage)).toBe('Paid.')
  expect(wallet.payments).toEqual([])
  expect(await page.history(id)).toEqual(['requested', 'denied'])
  const part = toolParts(chat.lastMessage).find(({ toolCallId }) =>
    toolCallId?.startsWith('remote-'),
  )
  expect(part).toMatchObject({ state: 'output-denied' })
  await expectRecord(page, chat)
})

test('[AP591] a remote ADK agent that does not accept approvals over A2A runs nothing', async () => {
  const wallet = new Wallet()
  await using remote = await serveAgent([paymentTool(wallet)])
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send(PAY)
  await chat.decide(true)
  expect(wallet.payments).toEqual([])
})

test('[AP591] an approval for a remote agent inside an agent used as a tool has its path, and two people decide it', async () => {
  await using remote = await serveA2a(({ parts }) =>
    JSON.stringify(parts).includes('"confirmed"')
      ? done(JSON.stringify(parts))
      : { state: 'input-required', parts: [confirmation('one')] },
  )
  await using bridge = await TestBridge.open({
    isLive: false,
    agent: (model) => PLACES['an agent used as a tool'].agent(model, remote),
    approvals: { 'helper.*': { deciders: { roles: ['manager'] }, approvers: 2 } },
  })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send(PLACES['an agent used as a tool'].send)
  const [mari, mike] = [bridge.page('mari'), bridge.page('mike')]
  const [asked] = await mari.inbox()
  expect(asked).toMatchObject({ toolName: 'helper.pay', path: ['assistant', 'helper'] })
  const id = String(asked?.id)
  expect((await page.decide(id, { approved: true })).status).toBe(403)
  await mari.decide(id, { approved: true })
  expect(remote.received).toHaveLength(1)
  expect((await mari.decide(id, { approved: true, args: { amount: 1 } })).status).not.toBe(200)
  await mike.decide(id, { approved: true })
  await page.untilMessages((messages) => textOf(messages.at(-1)) === 'Planned.')
  expect(remote.received[1]?.parts).toEqual([confirmed('one', true)])
  expect(await page.history(id)).toEqual(['requested', 'voted', 'approved', 'started', 'succeeded'])
})

const ARGS = { amount: 5 }

function call(name: string, id: string, args: Record<string, unknown>): Part {
  const metadata = { adk_type: 'function_call', adk_is_long_running: true }
  return { kind: 'data', data: { id, name, args }, metadata }
}

function confirmation(id: string, callId = 'call'): Part {
  const originalFunctionCall = { id: callId, name: 'pay', args: ARGS }
  return call('adk_request_confirmation', id, { originalFunctionCall, toolConfirmation: {} })
}

function response(id: string, name: string, value: unknown): Part {
  const metadata = { adk_type: 'function_response' }
  return { kind: 'data', data: { id, name, response: value }, metadata }
}

function confirmed(id: string, isConfirmed: boolean): Part {
  return response(id, 'adk_request_confirmation', { confirmed: isConfirmed })
}

const NIGHTS = z.object({ nights: z.number() })
const NIGHTS_SCHEMA = { type: 'object', properties: { nights: { type: 'number' } } }

test('[AP592] a remote ADK workflow asks with a schema, and the answer reaches its node', async () => {
  const ask = node(
    async function* ask() {
      yield new RequestInput({ message: 'How many nights?', responseSchema: NIGHTS })
    },
    { name: 'ask' },
  )
  const book = node((_context: unknown, answer: unknown) => `Booked: ${JSON.stringify(answer)}`, {
    name: 'book',
  })
  await using remote = await serveAdkAgent(
    new Workflow({ name: 'travel', edges: [['START', ask, book]] }),
  )
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send('Hi.')
  const [asked] = await page.inbox()
  expect(asked).toMatchObject({ kind: 'input', hint: 'How many nights?', schema: NIGHTS_SCHEMA })
  const id = String(asked?.id)
  const { body } = await page.decide(id, { approved: true, payload: { nights: 'x' } })
  expect(body.error?.code).toBe('invalid-answer')
  await page.decide(id, { approved: true, payload: { nights: 2 } })
  await page.untilState(id, 'succeeded')
  await page.untilMessages((messages) => textOf(messages.at(-1)) === 'Booked: {"nights":2}')
})

test('[AP592] a remote ADK agent waits for the result of a long-running tool, and its model reads it', async () => {
  const told: unknown[] = []
  await using remote = await serveAgent(
    [
      new LongRunningFunctionTool({
        name: 'ask_manager',
        description: 'Asks.',
        parameters: z.object({}),
        execute: () => ({ status: 'pending' }),
      }),
    ],
    {},
    (prompt) => told.push(prompt.contents.at(-1)),
  )
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send('[[call ask_manager {}]][[then]][[say Thanks.]]')
  const [asked] = await page.inbox()
  await page.decide(String(asked?.id), { approved: true, payload: 'Granted' })
  await page.untilMessages((messages) => textOf(messages.at(-1)).endsWith('Thanks.'))
  expect(JSON.stringify(told.at(-1))).toContain('Granted')
})

test('[AP592] a remote agent waits for the result of a long-running call, and gets it', async () => {
  await using remote = await serveA2a(({ parts }) =>
    parts.some(({ kind }) => kind === 'data')
      ? done('Thanks.')
      : { state: 'input-required', parts: [call('ask_manager', 'one', { topic: 'Raise' })] },
  )
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock, { autoSend: 'tool-calls' })
  await chat.send('Hi.')
  const [asked] = await page.inbox()
  expect(asked).toMatchObject({
    hint: 'The agent helper waits for the result of its call ask_manager.',
    args: { call: { name: 'ask_manager', args: { topic: 'Raise' } } },
  })
  await page.decide(String(asked?.id), { approved: true, payload: 'Yes' })
  await page.untilMessages((messages) => textOf(messages.at(-1)) === 'Thanks.')
  expect(remote.received[1]?.parts).toEqual([response('one', 'ask_manager', { result: 'Yes' })])
})

test('[AP592] several requests of one pause are answered together, each as it was decided', async () => {
  await using remote = await serveA2a(({ parts }) =>
    parts.some(({ kind }) => kind === 'data')
      ? done('Thanks.')
      : {
          state: 'input-required',
          parts: [
            confirmation('one'),
            call(TOOL, 'two', { message: 'Why?' }),
            confirmation('three'),
          ],
        },
  )
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send('Hi.')
  const [one, two, three] = await page.inbox()
  await page.decide(String(three?.id), { approved: false })
  await page.decide(String(two?.id), { approved: true, payload: 'Because.' })
  await page.untilState(String(two?.id), 'succeeded')
  expect(remote.received).toHaveLength(1)
  await page.decide(String(one?.id), { approved: true })
  await page.untilMessages((messages) => textOf(messages.at(-1)) === 'Thanks.')
  expect(remote.received).toHaveLength(2)
  expect(remote.received[1]?.parts).toEqual([
    confirmed('one', true),
    response('two', TOOL, { result: 'Because.' }),
    confirmed('three', false),
  ])
  expect((await page.approval(String(one?.id))).approval.state).toBe('succeeded')
})

test('[AP592] a remote agent may ask again and again in one task, and the ids of its calls do not matter', async () => {
  let count = 0
  await using remote = await serveA2a(() => {
    count += 1
    return count < 3
      ? { state: 'input-required', parts: [confirmation('same')] }
      : done('Paid twice.')
  })
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send('Hi.')
  const [first = ''] = chat.asked
  await chat.decide(true)
  // The same request with the same ids and arguments is another question.
  expect(remote.received).toHaveLength(2)
  const [second = ''] = chat.asked
  expect(second).not.toBe(first)
  expect((await page.approval(second)).approval.state).toBe('requested')
  await chat.decide(false)
  expect(remote.received[2]?.parts).toEqual([confirmed('same', false)])
  expect(textOf(chat.lastMessage)).toBe('Paid twice.')
  await expectRecord(page, chat)
})

test.each([
  [
    'Sign in at https://login.example/start?x=1.',
    { url: 'https://login.example/start?x=1.', host: 'login.example' },
  ],
  ['Sign in at http://login.example/start', undefined],
  ['Sign in at https://bank.example@evil.example/', undefined],
  ['javascript:alert(1)', undefined],
])(
  '[AP593] a remote agent that needs a sign-in (%s) asks the person to continue, and receives no secret',
  async (text, link) => {
    await using remote = await serveA2a(({ parts }) =>
      JSON.stringify(parts).includes('Continue.')
        ? done('Signed in.')
        : { state: 'auth-required', parts: [say(text)] },
    )
    await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
    const page = bridge.page()
    const chat = await page.open(stock, { autoSend: 'tool-calls' })
    await chat.send('Hi.')
    const [asked] = await page.inbox()
    const args: unknown = asked?.['args']
    expect(asked).toMatchObject({
      kind: 'input',
      hint: text,
      title: 'The remote agent helper asks you to sign in',
    })
    const response_schema = { type: 'object', properties: {}, additionalProperties: false }
    expect(args).toEqual({ agent: 'helper', message: text, response_schema, ...link })
    const refused = await page.decide(String(asked?.id), {
      approved: true,
      payload: { token: 'x' },
    })
    expect(refused.body.error?.code).toBe('invalid-answer')
    const toolCallId = toolParts(chat.lastMessage)[0]?.toolCallId ?? ''
    await chat.give({ tool: TOOL, toolCallId, output: {} })
    await chat.rest()
    expect(textOf(chat.lastMessage)).toBe('Signed in.')
    expect(remote.received[1]).toMatchObject({
      parts: [say('Continue.')],
      taskId: remote.received[0]?.taskId,
    })
  },
)

test.each<[string, RemoteReply, string]>([
  [
    'a credential',
    { state: 'auth-required', parts: [call('adk_request_credential', 'one', {})] },
    'needs a sign-in, which this chat cannot pass on',
  ],
  [
    'a credential as input',
    { state: 'input-required', parts: [call('adk_request_credential', 'one', {})] },
    'which this chat cannot pass on',
  ],
  [
    'a password',
    {
      state: 'input-required',
      parts: [
        call(TOOL, 'one', {
          message: 'Sign in',
          response_schema: { type: 'object', properties: { password: { type: 'string' } } },
        }),
      ],
    },
    'which this chat cannot pass on',
  ],
  [
    'a confirmation of nothing',
    { state: 'input-required', parts: [call('adk_request_confirmation', 'one', {})] },
    'which this chat cannot pass on',
  ],
])(
  '[AP444] a remote agent that asks for %s asks nobody, and says so',
  async (_what, reply, text) => {
    await using remote = await serveA2a(() => reply)
    await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
    const page = bridge.page()
    const chat = await page.open(stock)
    await chat.send('Hi.')
    expect(textOf(chat.lastMessage)).toContain(text)
    expect(await page.inbox()).toEqual([])
    expect(chat.lastMessage?.parts.map(({ type }) => type)).not.toContain('data-approval')
  },
)

test('[AP444] a remote agent that is a node of a workflow asks nobody, and says so', async () => {
  await using remote = await serveA2a(() => QUESTION)
  await using bridge = await TestBridge.open({
    isLive: false,
    agent: () => new Workflow({ name: 'flow', edges: [['START', remote.agent]] }),
  })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send('Hi.')
  expect(textOf(chat.lastMessage)).toContain('The agent helper waits for your reply.')
  expect(await page.inbox()).toEqual([])
})

test('[AP590] a pause without words is asked too', async () => {
  await using remote = await serveA2a(({ parts }) =>
    JSON.stringify(parts).includes('Kyoto') ? done('OK.') : { state: 'input-required', parts: [] },
  )
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send('Hi.')
  const [asked] = await page.inbox()
  expect(asked).toMatchObject({ hint: 'The agent helper waits for your reply.' })
  await page.decide(String(asked?.id), { approved: true, payload: 'Kyoto' })
  await page.untilMessages((messages) => textOf(messages.at(-1)) === 'OK.')
})

test.each(Object.entries(PLACES))(
  '[AP595] a question of %s that expires cancels its task, and the person and the model learn it',
  async (place, { agent, send }) => {
    await using remote = await serveA2a(() => QUESTION)
    await using bridge = await TestBridge.open({
      isLive: false,
      approvalDeadlineMs: 200,
      agent: (model) => agent(model, remote),
    })
    const page = bridge.page()
    const chat = await page.open(stock)
    await chat.send(send)
    const said =
      'The question of the agent helper expired without an answer. Its task was cancelled.'
    const isTool = place === 'an agent used as a tool'
    await page.untilMessages((messages) => textOf(messages.at(-1)) === (isTool ? 'Planned.' : said))
    expect(bridge.results).toEqual(isTool ? [{ result: said }] : [])
    expect(await remote.stateOf(remote.received[0]?.taskId ?? '')).toBe('canceled')
    expect(remote.received).toHaveLength(1)
  },
)

test('[AP595] declining a question of words cancels the task, because any words would be an answer', async () => {
  await using remote = await serveA2a(() => QUESTION)
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send('Hi.')
  const [asked] = await page.inbox()
  await page.decide(String(asked?.id), { approved: false })
  await page.untilMessages((messages) =>
    textOf(messages.at(-1)).includes('was declined. Its task was cancelled.'),
  )
  expect(await remote.stateOf(remote.received[0]?.taskId ?? '')).toBe('canceled')
})

test('[AP595] a task that cannot be cancelled is reported as such', async () => {
  const remote = await serveA2a(() => QUESTION)
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send('Hi.')
  const [asked] = await page.inbox()
  await remote[Symbol.asyncDispose]()
  await page.decide(String(asked?.id), { approved: false })
  await page.untilMessages((messages) =>
    textOf(messages.at(-1)).includes('Its task could not be cancelled and may still wait.'),
  )
  expect(bridge.errors).toHaveLength(1)
})

test('[AP591] an approval that cannot be sent has failed', async () => {
  const remote = await serveA2a(() => ({ state: 'input-required', parts: [confirmation('one')] }))
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send('Hi.')
  const [asked] = await page.inbox()
  await remote[Symbol.asyncDispose]()
  await page.decide(String(asked?.id), { approved: true })
  await page.untilState(String(asked?.id), 'failed')
  expect(remote.received).toHaveLength(1)
})

test('[AP596] messages to a remote agent contain no decisions about local calls', async () => {
  await using remote = await serveA2a(() => done('Hello.'))
  await using bridge = await TestBridge.open({
    isLive: false,
    agent: (model, tools) => assistant(model, { tools, subAgents: [remote.agent] }),
  })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send(
    '[[call process_payment {"amount":50,"recipient":"Hanako"}]][[then]][[say Paid.]]',
  )
  const [id = ''] = chat.asked
  await chat.decide(true)
  await chat.send(PLACES['a sub-agent'].send)
  expect(remote.received).toHaveLength(1)
  expect(remote.received[0]?.text).not.toContain(id)
  expect(remote.received[0]?.parts.every(({ kind }) => kind === 'text')).toBe(true)
})

test('[AP590] a message that is sent while a remote agent waits is no answer, and the question stays open', async () => {
  await using remote = await serveA2a(({ parts }) => {
    const text = JSON.stringify(parts)
    if (text.includes('Kyoto')) return done('Kyoto it is.')
    return text.includes('Something else') ? done('Sure.') : QUESTION
  })
  await using bridge = await TestBridge.open({ isLive: false, agent: () => remote.agent })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send('Plan a trip.')
  const [asked] = await page.inbox()
  await chat.send('Something else.')
  expect(textOf(chat.lastMessage)).toBe('Sure.')
  expect(remote.received[1]?.taskId).not.toBe(remote.received[0]?.taskId)
  expect((await page.inbox()).map(({ id }) => id)).toEqual([asked?.id])
  await page.decide(String(asked?.id), { approved: true, payload: 'Kyoto' })
  await page.untilMessages((messages) => textOf(messages[1]) === 'Kyoto it is.')
  expect(remote.received[2]?.taskId).toBe(remote.received[0]?.taskId)
})

test('[AP590] a remote agent that is a step waits, and the next step follows in the same message', async () => {
  await using remote = await serveA2a(({ parts }) =>
    JSON.stringify(parts).includes('Kyoto') ? done('Kyoto it is.') : QUESTION,
  )
  await using bridge = await TestBridge.open({
    isLive: false,
    agent: (model) =>
      // oxlint-disable-next-line typescript/no-deprecated -- Deprecated in favour of Workflow, and in use.
      new SequentialAgent({ name: 'trip', subAgents: [remote.agent, assistant(model)] }),
  })
  const page = bridge.page()
  const chat = await page.open(stock)
  await chat.send('Plan.')
  expect(bridge.asked).toBe(0)
  const [asked] = await page.inbox()
  await page.decide(String(asked?.id), { approved: true, payload: 'Kyoto' })
  await page.untilMessages((messages) => textOf(messages.at(-1)).endsWith('OK.'))
  expect(bridge.asked).toBe(1)
  expect((await page.messages()).length).toBe(2)
})

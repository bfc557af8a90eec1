import {
  AgentTool,
  type BaseLlm,
  BasePlugin,
  type Context,
  FunctionTool,
  LlmAgent,
} from '@google/adk'
import { Type } from '@google/genai'
import type { Action, Responder } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { defer, tool } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { approvingClients, liveClient } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { agentOf, ask, nest, pay, play, say } from './support/nested-agents.ts'
import type { Plays } from './support/nested-agents.ts'
import { paymentTool } from './support/payments.ts'
import { TestBridge, type TestBridgeOptions } from './support/test-bridge.ts'

const PLAYS: Plays = {
  planner: [[ask('travel')], [say('All done.')]],
  travel: [[pay(5)], [say('Booked.')]],
}

/** A bridge whose agents use each other as tools. Records the responses that each agent received, and what its model read last. */
async function open(plays: Plays, options: TestBridgeOptions & { names?: string[] } = {}) {
  const told: Record<string, unknown[]> = {}
  const read: Record<string, unknown> = {}
  const actor = play(plays)
  const respond: Responder = (prompt) => {
    const results = prompt.contents.flatMap(({ parts = [] }) =>
      parts.flatMap(({ functionResponse }) => functionResponse?.response ?? []),
    )
    told[agentOf(prompt)] = results
    read[agentOf(prompt)] = prompt.contents
    return actor(prompt)
  }
  const { names, ...rest } = options
  const testBridge = await TestBridge.open({
    agent: (model, tools) => nest(model, tools, { ...(names && { names }) }),
    respond,
    ...rest,
  })
  return { testBridge, told, read }
}

const clients = [...approvingClients, liveClient]

describe.each(clients)('$name', (client) => {
  // Each client approves a call inside an agent. They share the other tests.
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  test('[AP400] a call inside an agent used as a tool requests approval, runs once when it is approved, and its result is passed up', async () => {
    const { testBridge } = await open(PLAYS)
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    expect(chat.asked).toHaveLength(1)
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { type: 'tool-travel', state: 'output-available', output: { status: 'pending' } },
      { type: 'tool-process_payment', state: 'approval-requested', input: { amount: 5 } },
    ])
    await expectRecord(page, chat)
    expect(testBridge.wallet.payments).toEqual([])
    expect(testBridge.asked).toBe(2)
    await chat.decide(true)
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { type: 'tool-travel', state: 'output-available', output: { result: 'Booked.' } },
      { type: 'tool-process_payment', state: 'output-available', output: { success: true } },
    ])
    expect(textOf(chat.lastMessage)).toBe('All done.')
    expect(testBridge.results).toEqual([{ result: 'Booked.' }])
    expect(testBridge.asked).toBe(4)
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
    expect(testBridge.errors).toEqual([])
  })

  it('[AP401] a denied call does not run, and the agent that made it receives the denial', async () => {
    const { testBridge, told } = await open(PLAYS)
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    await chat.decide({ approved: false, reason: 'Too much.' })
    expect(testBridge.wallet.payments).toEqual([])
    expect(told['travel']).toMatchObject([{ status: 'denied', reason: 'Too much.' }])
    expect(told['planner']).toEqual([{ result: 'Booked.' }])
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-available' },
      { type: 'tool-process_payment', state: 'output-denied' },
    ])
    await expectRecord(page, chat)
  })

  it('[AP401] a denied call of the same agent does not request approval again in a new run', async () => {
    const plays = {
      planner: [[ask('travel')], [ask('travel', 'Try again.')], [say('All done.')]],
      travel: [[pay(5)], [say('Booked.')]],
    }
    const { testBridge, told } = await open(plays)
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    await chat.decide(false)
    expect(chat.asked).toEqual([])
    expect(told['travel']).toMatchObject([{ status: 'denied', retryable: false }])
    expect(textOf(chat.lastMessage)).toBe('All done.')
    await expectRecord(page, chat)
  })

  it('[AP402] an approval two levels down shows its path, and its result passes every level', async () => {
    const plays = {
      planner: [[ask('travel')], [say('All done.')]],
      travel: [[ask('desk')], [say('From the desk.')]],
      desk: [[pay(5)], [pay(7)], [say('Paid twice.')]],
    }
    const { testBridge, told } = await open(plays, { names: ['planner', 'travel', 'desk'] })
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    const path = ['planner', 'travel', 'desk']
    expect(await page.inbox()).toMatchObject([{ toolName: 'process_payment', path }])
    expect(
      chat.lastMessage?.parts.find(({ type }) => type === 'data-approval')?.data,
    ).toMatchObject({ path })
    await chat.decide(true)
    expect(testBridge.wallet.payments).toEqual([{ amount: 5, recipient: 'A' }])
    expect(chat.asked).toHaveLength(1)
    await expectRecord(page, chat)
    await chat.decide(true)
    expect(testBridge.wallet.payments).toHaveLength(2)
    expect(told).toMatchObject({
      planner: [{ result: 'From the desk.' }],
      travel: [{ result: 'Paid twice.' }],
      desk: [{ balance: 995 }, { balance: 988 }],
    })
    expect(textOf(chat.lastMessage)).toBe('All done.')
    expect(page.sent).toHaveLength(3)
    await expectRecord(page, chat)
    expect(testBridge.errors).toEqual([])
  })

  it.each([
    ['both at once', [true, true, true]],
    ['one of each is denied', [true, false, false]],
  ])(
    '[AP402] several calls of a step wait together, inside and outside: %s',
    async (_name, answers) => {
      const plays = {
        planner: [[ask('travel', 'One.'), pay(1, 'outer')], [say('All done.')]],
        travel: [[pay(5, 'first'), pay(7, 'second')], [say('Booked.')]],
      }
      const { testBridge, told } = await open(plays, {
        agent: (model, tools) => nest(model, tools, { outer: tools }),
      })
      await using bridge = testBridge
      const page = bridge.page()
      const chat = await page.open(client)
      await chat.send('Go.')
      const recipients = toolParts(chat.lastMessage).flatMap((part) =>
        part.state === 'approval-requested'
          ? [(part.input as { recipient: string }).recipient]
          : [],
      )
      expect(recipients.toSorted()).toEqual(['first', 'outer', 'second'])
      await expectRecord(page, chat)
      await chat.decide(...answers)
      const expected = recipients.filter((_recipient, index) => answers[index])
      expect(testBridge.wallet.payments.map(({ recipient }) => recipient).toSorted()).toEqual(
        expected.toSorted(),
      )
      expect(told['travel']).toHaveLength(2)
      expect(told['planner']).toHaveLength(2)
      expect(textOf(chat.lastMessage)).toBe('All done.')
      expect(page.sent).toHaveLength(2)
      await expectRecord(page, chat)
      expect(testBridge.errors).toEqual([])
    },
  )
})

describe.each(approvingClients.slice(1))('$name', (client) => {
  test('[AP401] a call whose approval expires does not run, and the agent that made it receives that', async () => {
    const { testBridge, told } = await open(PLAYS, { approvalDeadlineMs: 500 })
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    await page.untilMessages((messages) => textOf(messages.at(-1)) === 'All done.')
    expect(told['travel']).toMatchObject([{ status: 'expired' }])
    expect(testBridge.wallet.payments).toEqual([])
    expect(toolParts((await page.messages()).at(-1))).toMatchObject([
      { output: { result: 'Booked.' } },
      { type: 'tool-process_payment', state: 'output-error' },
    ])
  })

  test('[AP401] a new message cancels a call inside, and ends the agent that made it', async () => {
    const { testBridge, told } = await open(PLAYS, { whilePending: 'cancel' })
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    const [id = ''] = chat.asked
    await chat.send('Forget it. (1)')
    expect(await page.history(id)).toEqual(['requested', 'cancelled'])
    expect(JSON.stringify(told['planner'])).toContain('the approval was cancelled')
    const messages = await page.messages()
    expect(toolParts(messages[1])).toMatchObject([
      { type: 'tool-travel', state: 'output-error' },
      { type: 'tool-process_payment', state: 'output-error' },
    ])
    expect(testBridge.wallet.payments).toEqual([])
  })

  test('[AP403] calls inside are decided one by one, from anywhere, across restarts', async () => {
    const plays = {
      planner: [[ask('travel')], [say('All done.')]],
      travel: [[pay(5, 'first'), pay(7, 'second')], [say('Booked.')]],
    }
    const { testBridge, told } = await open(plays)
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    const [first = '', second = ''] = chat.asked
    await testBridge.restart()
    expect(await page.decide(second, { approved: true })).toMatchObject({ status: 200 })
    await page.untilState(second, 'succeeded')
    await page.untilMessages(
      (messages) => toolParts(messages.at(-1)).at(-1)?.state === 'output-available',
    )
    expect(testBridge.wallet.payments).toEqual([{ amount: 7, recipient: 'second' }])
    expect(testBridge.asked).toBe(0)
    await testBridge.restart()
    expect(await page.decide(first, { approved: false })).toMatchObject({ status: 200 })
    await page.untilMessages((messages) => textOf(messages.at(-1)) === 'All done.')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(told['travel']).toMatchObject([{ status: 'denied' }, { recipient: 'second' }])
    expect(testBridge.asked).toBe(2)
    expect(await page.inbox()).toEqual([])
    const reloaded = await page.open(client)
    await expectRecord(page, reloaded)
    await reloaded.send('Again.')
    expect(reloaded.asked).toHaveLength(2)
  })

  test('[AP404] an agent that needs approval itself starts once, and asks for its calls', async () => {
    const { testBridge, told } = await open(PLAYS, { approvals: { travel: true } })
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    expect(testBridge.asked).toBe(1)
    const [outer = ''] = chat.asked
    await chat.decide(true)
    const [inner = ''] = chat.asked
    expect(inner).not.toBe(outer)
    await expectRecord(page, chat)
    await chat.decide(true)
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(told['planner']).toEqual([{ result: 'Booked.' }])
    expect(await page.history(outer)).toEqual(['requested', 'approved', 'started', 'succeeded'])
    expect(testBridge.asked).toBe(4)
    await expectRecord(page, chat)
  })

  test('[AP405] an agent that is stopped keeps the result of its approved call, and does not continue', async () => {
    const gate = defer()
    const started = defer()
    const before = (): Promise<void> => {
      started.resolve()
      return gate.promise
    }
    const { testBridge } = await open(PLAYS, {
      tools: (wallet) => [paymentTool(wallet, { before })],
    })
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    const [id = ''] = chat.asked
    await chat.click({ id, approved: true })
    await started.promise
    await page.fetch(`${testBridge.url}/chats/chat-1/stop`, { method: 'POST' })
    gate.resolve()
    await page.untilState(id, 'succeeded')
    await page.untilMessages((messages) => toolParts(messages.at(-1))[0]?.state === 'output-error')
    expect(toolParts((await page.messages()).at(-1))).toMatchObject([
      {
        type: 'tool-travel',
        errorText: 'Stopped before the result arrived. The call may or may not have taken effect.',
      },
      { type: 'tool-process_payment', state: 'output-available', output: { balance: 995 } },
    ])
    const asked = testBridge.asked
    await testBridge.restart()
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(asked).toBe(2)
    const reloaded = await page.open(client)
    await reloaded.send('Again.')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(reloaded.asked).toHaveLength(1)
  })

  test('[AP400] arguments of a call inside can be edited, by the schema of its tool', async () => {
    const { testBridge, told } = await open(PLAYS)
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    const [id = ''] = chat.asked
    expect(
      await page.decide(id, { approved: true, args: { amount: -1, recipient: 'A' } }),
    ).toMatchObject({ status: 400 })
    expect(
      await page.decide(id, { approved: true, args: { amount: 3, recipient: 'B' } }),
    ).toMatchObject({ status: 200 })
    await page.untilMessages((messages) => textOf(messages.at(-1)) === 'All done.')
    expect(testBridge.wallet.payments).toEqual([{ amount: 3, recipient: 'B' }])
    expect(told['travel']).toMatchObject([{ edited_arguments: { amount: 3 } }])
  })

  test('[AP400] the request to an agent can be edited', async () => {
    const { testBridge, read } = await open(
      { planner: [[ask('travel', 'Book.')], [say('All done.')]], travel: [[say('Booked.')]] },
      { approvals: { travel: true } },
    )
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    const [id = ''] = chat.asked
    expect(
      await page.decide(id, { approved: true, args: { request: 'Ask first.' } }),
    ).toMatchObject({ status: 200 })
    await page.untilMessages((messages) => textOf(messages.at(-1)) === 'All done.')
    expect(read['travel']).toMatchObject([{ parts: [{ text: 'Ask first.' }] }])
  })

  test('[AP400] a tool inside that requests confirmation itself is approved, and runs again once', async () => {
    const runs: unknown[] = []
    const asking = tool('process_payment', (_args: unknown, context?: Context) => {
      if (!context?.toolConfirmation) context?.requestConfirmation({ hint: 'Really?', payload: 1 })
      runs.push(context?.toolConfirmation?.payload)
      return { status: 'ran' }
    })
    const { testBridge } = await open(PLAYS, { tools: () => [asking] })
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    expect(await page.inbox()).toMatchObject([{ hint: 'Really?', payload: 1 }])
    await chat.decide({ approved: true, payload: 2 })
    expect(runs).toEqual([undefined, 2])
    expect(textOf(chat.lastMessage)).toBe('All done.')
    await expectRecord(page, chat)
  })

  test('[AP408] a chat is deleted together with the sessions of the agents inside it, which are not listed as chats', async () => {
    const { testBridge } = await open(PLAYS)
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    const [id = ''] = chat.asked
    const appName = 'adk-stream-protocol'
    const { sessions } = await testBridge.store.sessions.listSessions({ appName })
    expect(sessions).toHaveLength(1)
    expect(await page.delete()).toMatchObject({ status: 204 })
    expect(await page.inbox()).toEqual([])
    expect(await page.decide(id, { approved: true })).toMatchObject({ status: 410 })
    const left = await testBridge.store.sessions.listSessions({ appName })
    expect(left.sessions).toEqual([])
    expect(testBridge.wallet.payments).toEqual([])
  })
})

const call = (name: string, args = {}): Action => ({ type: 'call', name, args })

/** An agent with an input schema. Both agents have tools that write and read state. */
function typed(model: BaseLlm): LlmAgent {
  const save = new FunctionTool({
    name: 'save',
    description: 'Saves.',
    requireConfirmation: true,
    execute: (_args: unknown, context?: Context) => {
      context?.state.set('seat', `${String(context.state.get('row'))}A`)
      return { saved: true }
    },
  })
  const read = tool('read', (_args: unknown, context?: Context) => ({
    seat: context?.state.get('seat'),
  }))
  const inner = new LlmAgent({
    name: 'travel',
    model,
    instruction: 'I am the travel.',
    inputSchema: { type: Type.OBJECT, properties: { city: { type: Type.STRING } } },
    tools: [save, read],
  })
  return new LlmAgent({
    name: 'planner',
    model,
    instruction: 'I am the planner.',
    beforeAgentCallback: ({ state }) => {
      state.set('row', 12)
      return undefined
    },
    tools: [new AgentTool({ agent: inner }), read],
  })
}

test('[AP407] an agent used as a tool reads and writes the state of its caller, also after a pause', async () => {
  const prompts: string[] = []
  const actor = play({
    planner: [[call('travel', { city: 'Kyoto' })], [call('read')], [say('All done.')]],
    travel: [[call('save')], [call('read')], [say('Saved.')]],
  })
  await using testBridge = await TestBridge.open({
    agent: typed,
    respond: (prompt) => {
      prompts.push(JSON.stringify(prompt))
      return actor(prompt)
    },
  })
  const page = testBridge.page()
  const [client] = approvingClients
  if (!client) throw new Error('There is a client.')
  const chat = await page.open(client)
  await chat.send('Go.')
  expect(prompts[1]).toContain(String.raw`{\"city\":\"Kyoto\"}`)
  await testBridge.restart()
  await chat.decide(true)
  const [, , , inside = '', , outside = ''] = prompts
  expect(inside).toContain('I am the travel.')
  expect(inside).toContain('"seat":"12A"')
  expect(outside).toContain('I am the planner.')
  expect(outside).toContain('"seat":"12A"')
  expect(textOf(chat.lastMessage)).toBe('All done.')
})

class FailingAudit extends BasePlugin {
  override async afterToolCallback({ result }: { result: Record<string, unknown> }) {
    if ('balance' in result) throw new Error('The audit is down.')
    return undefined
  }
}

test('[AP802] a callback that throws after a call inside an agent does not hide its outcome', async () => {
  const { testBridge } = await open(PLAYS, { plugins: [new FailingAudit('audit')] })
  await using bridge = testBridge
  const page = bridge.page()
  const chat = await page.open(approvingClients[0] ?? liveClient)
  await chat.send('Go.')
  await chat.decide(true)
  expect(bridge.wallet.payments).toHaveLength(1)
  for (const message of [chat.lastMessage, (await page.messages()).at(-1)])
    expect(toolParts(message)).toMatchObject([
      { type: 'tool-travel', state: 'output-error', errorText: 'The tool travel failed.' },
      { type: 'tool-process_payment', state: 'output-available', output: { balance: 995 } },
    ])
})

test('[AP803] the other questions of an agent that has failed are cancelled', async () => {
  const plays = { ...PLAYS, travel: [[pay(5), pay(6)], [say('Booked.')]] }
  const { testBridge } = await open(plays, { plugins: [new FailingAudit('audit')] })
  await using bridge = testBridge
  const page = bridge.page()
  const chat = await page.open(approvingClients[0] ?? liveClient)
  await chat.send('Go.')
  const [first = '', second = ''] = chat.asked
  await page.decide(first, { approved: true })
  await page.untilState(second, 'cancelled')
  expect((await page.decide(second, { approved: true })).status).toBe(410)
  await page.untilMessages((messages) => toolParts(messages.at(-1))[0]?.state === 'output-error')
  const reason = expect.stringContaining('the agent that made the call has failed') as string
  expect(toolParts((await page.messages()).at(-1))).toMatchObject([
    { type: 'tool-travel', state: 'output-error' },
    { type: 'tool-process_payment', state: 'output-available' },
    { type: 'tool-process_payment', state: 'output-error', errorText: reason },
  ])
  expect(await page.inbox()).toEqual([])
  expect(bridge.wallet.payments).toHaveLength(1)
})

test('[AP803] the caller of an agent whose model fails receives an error', async () => {
  const { testBridge, told } = await open({
    ...PLAYS,
    travel: [[pay(5)], [{ type: 'fail', status: 503, message: 'Busy' }]],
  })
  await using bridge = testBridge
  const page = bridge.page()
  const chat = await page.open(approvingClients[0] ?? liveClient)
  await chat.send('Go.')
  await chat.decide(true)
  expect(toolParts(chat.lastMessage)).toMatchObject([
    { type: 'tool-travel', state: 'output-error', errorText: 'The tool travel failed.' },
    { type: 'tool-process_payment', state: 'output-available' },
  ])
  expect(told['planner']).toEqual([{ error: 'The tool travel failed.' }])
})

import { LlmAgent, LongRunningFunctionTool } from '@google/adk'
import { expect, test } from 'vitest'

import { defer } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { approvingClients } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { HeldSessions } from './support/held-sessions.ts'
import { LateStart } from './support/late-start.ts'
import { TestBridge, type TestBridgeOptions } from './support/test-bridge.ts'
import { callPayment, paymentTool } from './support/payments.ts'

const LIFE = ['requested', 'approved', 'started', 'succeeded']
const PAY = `${callPayment(50)}[[then]][[say Paid.]]`
const [client = failWithoutClient()] = approvingClients

test.each(['inbox', 'chat'])(
  '[AP61] a call approved in the %s runs before ADK receives the decision, and once',
  async (place) => {
    const sessionService = new HeldSessions()
    await using testBridge = await TestBridge.open({ sessionService })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    if (place === 'inbox') await page.decide(id, { approved: true })
    else await chat.click({ id, approved: true })
    await page.untilState(id, 'succeeded')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(testBridge.asked).toBe(1)
    sessionService.release.resolve()
    await page.untilMessages((messages) => toolParts(messages.at(-1))[0]?.state !== undefined)
    await chat.rest()
    const reloaded = await page.open(client)
    expect(toolParts(reloaded.lastMessage)).toMatchObject([{ output: { balance: 950 } }])
    expect(testBridge.results).toMatchObject([{ balance: 950 }])
    expect(reloaded.text).toBe('Paid.')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(await page.history(id)).toEqual(LIFE)
    await expectRecord(page, reloaded)
  },
)

test.each(['inbox', 'chat'])(
  '[AP61] a decision in the %s and the claim of its call are one commit',
  async (place) => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    const { approvals } = testBridge.store
    const asked = await approvals.get(id)
    // The client has read its turn to the end a moment before the chat is unlocked.
    await expect.poll(() => asked && approvals.findLockHolder(asked.chat)).toBeUndefined()
    const commits: string[][] = []
    const replaceAll = approvals.replaceAll.bind(approvals)
    approvals.replaceAll = (transitions) => {
      commits.push(transitions.map(({ entry }) => entry.event.type))
      return replaceAll(transitions)
    }
    if (place === 'inbox') await page.decide(id, { approved: true })
    else await chat.click({ id, approved: true })
    await page.untilState(id, 'succeeded')
    await chat.rest()
    expect(commits).toContainEqual(['approved', 'started'])
    expect(await page.history(id)).toEqual(LIFE)
  },
)

test('[AP61] a started call is `executing` before its turn has resumed', async () => {
  const started = defer()
  const gate = defer()
  const sessionService = new HeldSessions()
  const before = (): Promise<void> => {
    started.resolve()
    return gate.promise
  }
  await using testBridge = await TestBridge.open({
    sessionService,
    tools: (wallet) => [paymentTool(wallet, { before })],
  })
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(PAY)
  const [id = ''] = chat.asked
  await page.decide(id, { approved: true })
  await started.promise
  await sessionService.reached.promise
  expect(await page.history(id)).toEqual(LIFE.slice(0, 3))
  // Repeated decisions, while it runs and while ADK waits for it, have no effect.
  expect((await page.decide(id, { approved: true })).body.error?.code).toBe('approval-decided')
  sessionService.release.resolve()
  expect((await page.decide(id, { approved: false })).body.error?.code).toBe('approval-decided')
  gate.resolve()
  await page.untilMessages(
    (messages) => toolParts(messages.at(-1))[0]?.state === 'output-available',
  )
  expect(testBridge.wallet.payments).toHaveLength(1)
  expect(await page.history(id)).toEqual(LIFE)
})

const LATE: readonly (readonly [string, TestBridgeOptions])[] = [
  ['a plugin may end the run first', { plugins: [new LateStart('late')] }],
  [
    'its agent may end the run first',
    {
      agent: (model, tools) =>
        new LlmAgent({ name: 'assistant', model, tools, beforeAgentCallback: () => undefined }),
    },
  ],
  [
    'its tool is long-running',
    {
      tools: (wallet) => [
        new LongRunningFunctionTool({
          name: 'process_payment',
          description: 'Pays somebody.',
          requireConfirmation: true,
          execute: () => ({ balance: wallet.pay({ amount: 50, recipient: '花子' }) }),
        }),
      ],
    },
  ],
]

test.each(LATE)('[AP62] if %s, ADK starts the call', async (_where, options) => {
  const sessionService = new HeldSessions()
  await using testBridge = await TestBridge.open({ ...options, sessionService })
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(PAY)
  const [id = ''] = chat.asked
  await page.decide(id, { approved: true })
  await sessionService.reached.promise
  expect(await page.history(id)).toEqual(['requested', 'approved'])
  sessionService.release.resolve()
  await page.untilState(id, 'succeeded')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[AP62] several decisions in one request run one after the other, in the order of the calls', async () => {
  let running = 0
  let most = 0
  const before = async (): Promise<void> => {
    running += 1
    most = Math.max(most, running)
    await new Promise(setImmediate)
    running -= 1
  }
  await using testBridge = await TestBridge.open({
    tools: (wallet) => [paymentTool(wallet, { before })],
  })
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(`${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Paid.]]`)
  const [first = '', second = ''] = chat.asked
  await chat.click({ id: second, approved: true })
  await chat.click({ id: first, approved: true })
  await chat.rest()
  expect(testBridge.wallet.payments.map(({ recipient }) => recipient)).toEqual(['Alice', 'Bob'])
  expect(most).toBe(1)
  await expectRecord(page, chat)
})

test('[AP65] a call that is approved while its chat is locked waits until it is unlocked', async () => {
  await using testBridge = await TestBridge.open()
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(PAY)
  const [id = ''] = chat.asked
  const other = await page.open(client)
  const speaking = other.send('[[say Meanwhile]][[wait door]][[say .]]')
  await other.untilShown('Meanwhile')
  await page.decide(id, { approved: true })
  expect(await page.history(id)).toEqual(['requested', 'approved'])
  testBridge.emulator.release('door')
  await speaking
  await page.untilState(id, 'succeeded')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[AP65] calls that are approved one by one run one after the other, each with the state of the previous one', async () => {
  const gates = [defer(), defer()]
  const started = defer()
  let calls = 0
  const before = (): Promise<void> => {
    started.resolve()
    return gates[calls++]?.promise ?? Promise.resolve()
  }
  const sessionService = new HeldSessions()
  await using testBridge = await TestBridge.open({
    sessionService,
    tools: (wallet) => [paymentTool(wallet, { before })],
  })
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(`${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Paid.]]`)
  const [first = '', second = ''] = chat.asked
  await page.decide(second, { approved: true })
  await started.promise
  await page.decide(first, { approved: true })
  sessionService.release.resolve()
  expect(await page.history(first)).toEqual(['requested', 'approved'])
  for (const gate of gates) gate.resolve()
  await page.untilState(first, 'succeeded')
  expect(testBridge.wallet.payments.map(({ recipient }) => recipient)).toEqual(['Bob', 'Alice'])
  await page.untilMessages((messages) => JSON.stringify(messages.at(-1)).includes('Paid.'))
  expect(testBridge.asked).toBe(2)
  expect(testBridge.results).toMatchObject([{ recipient: 'Alice' }, { recipient: 'Bob' }])
})

test('[AP23] the result of a turn that is stopped before ADK resumes is used by a later turn', async () => {
  const started = defer()
  const gate = defer()
  const sessionService = new HeldSessions()
  const before = (): Promise<void> => {
    started.resolve()
    return gate.promise
  }
  await using testBridge = await TestBridge.open({
    sessionService,
    tools: (wallet) => [paymentTool(wallet, { before })],
  })
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(PAY)
  const [id = ''] = chat.asked
  await chat.click({ id, approved: true })
  await started.promise
  await sessionService.reached.promise
  page.loseConnection()
  await page.untilMessages(() => true)
  sessionService.release.resolve()
  gate.resolve()
  await page.untilMessages(
    (messages) => toolParts(messages.at(-1))[0]?.state === 'output-available',
  )
  expect(testBridge.wallet.payments).toHaveLength(1)
  expect(await page.history(id)).toEqual(LIFE)
  const reloaded = await page.open(client)
  await reloaded.send('[[say Still here.]]')
  expect(reloaded.text).toBe('Still here.')
})

function failWithoutClient(): never {
  throw new Error('There is no client.')
}

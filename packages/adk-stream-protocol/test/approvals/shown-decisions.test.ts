import { requestInputTool } from '@google/adk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { UNKNOWN } from '../../src/agent/call-responses.ts'
import type { Approval } from '../../src/approvals/approval.ts'
import type { Decision } from '../../src/approvals/next-approval.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { defer } from '../support/agents.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { toolParts } from '../support/chat-probe.ts'
import { locationTool } from '../support/locating.ts'
import { approvingClients, liveClient, ourClients } from './support/approving-chat.ts'
import { expectValid } from './support/expect-record.ts'
import { callPayment, paymentTool } from './support/payments.ts'
import { TestBridge } from './support/test-bridge.ts'

const APP = 'adk-stream-protocol'
const EXPIRED = 'The approval expired before anyone decided. The call did not run.'
const MOVED_ON = 'the person wrote something else'
const HANAKO = { id: 'hanako', roles: [] }
const MARI = { id: 'mari', roles: ['manager'] }

/** What happens to an approval in the ledger, before any server reports it in the conversation. */
type Act = (ledger: Ledger, approval: Approval, other: Ledger) => Promise<unknown>

const decide =
  (decision: Partial<Decision> = {}): Act =>
  (ledger, { id }) =>
    ledger.decide(id, { by: HANAKO, approved: true, ...decision })

const start: Act = async (ledger, approval, other) => {
  await decide()(ledger, approval, other)
  await ledger.claim(approval.id, approval)
}

const expire: Act = async (ledger, approval, other) => {
  while (Date.now() <= approval.deadline) await new Promise(setImmediate)
  await decide()(ledger, approval, other)
}

const APPROVED = { state: 'approved', by: { own: true, others: [] } }
const RESPONDED = { state: 'approval-responded', approval: { approved: true } }

interface Shown {
  readonly name: string
  /** The recipient of the payment chooses the policy. */
  readonly recipient?: string
  readonly act: Act
  readonly part: object
  readonly data: object
}

const SHOWN: readonly Shown[] = [
  {
    name: 'with one vote of two',
    recipient: 'two',
    act: decide({ by: MARI }),
    part: { state: 'approval-requested' },
    data: { state: 'requested' },
  },
  { name: 'approved', act: decide(), part: RESPONDED, data: APPROVED },
  {
    name: 'approved by another person',
    recipient: 'manager',
    act: decide({ by: MARI, reason: 'Fine.' }),
    part: { ...RESPONDED, approval: { approved: true, reason: 'Fine.' } },
    data: { state: 'approved', by: { own: false, others: ['mari'] } },
  },
  { name: 'running', act: start, part: RESPONDED, data: APPROVED },
  {
    name: 'succeeded',
    act: async (ledger, approval, other) => {
      await start(ledger, approval, other)
      await ledger.succeed(approval.id, { balance: 950 })
    },
    part: RESPONDED,
    data: APPROVED,
  },
  {
    name: 'denied',
    act: decide({ approved: false, reason: 'Too much.' }),
    part: { state: 'approval-responded', approval: { approved: false, reason: 'Too much.' } },
    data: { state: 'denied', reason: 'Too much.', by: { own: true, others: [] } },
  },
  {
    name: 'expired',
    recipient: 'late',
    act: expire,
    part: { state: 'output-error', errorText: EXPIRED },
    data: { state: 'expired' },
  },
  {
    name: 'cancelled',
    act: (ledger, { id }) => ledger.cancel(id, MOVED_ON),
    part: { state: 'output-error', errorText: `Not run: the approval was cancelled. ${MOVED_ON}` },
    data: { state: 'cancelled', reason: MOVED_ON },
  },
  {
    name: 'unknown',
    act: async (ledger, approval, other) => {
      await start(ledger, approval, other)
      while ((await other.recover()).length === 0) await new Promise(setImmediate)
    },
    part: { state: 'output-error', errorText: UNKNOWN.error },
    data: { state: 'unknown' },
  },
]

const stockClients = [...approvingClients, liveClient]
const [client = failWithoutClient()] = approvingClients

/** A bridge whose server reports nothing by itself. */
async function open(): Promise<TestBridge> {
  return TestBridge.open({
    limits: { sweepMs: 3_600_000, maxSocketsPerPrincipal: 100 },
    tools: (wallet) => [paymentTool(wallet), locationTool({ gated: true }), requestInputTool],
    approvals: {
      process_payment: ({ args }) => {
        if (args['recipient'] === 'manager') return { deciders: { roles: ['manager'] } }
        if (args['recipient'] === 'two') return { deciders: { roles: ['manager'] }, approvers: 2 }
        return args['recipient'] === 'late' ? { deadlineMs: 1 } : true
      },
    },
  })
}

describe('a decision that the conversation does not contain yet', () => {
  let testBridge: TestBridge
  beforeAll(async () => {
    testBridge = await open()
  })
  afterAll(() => testBridge[Symbol.asyncDispose]())

  /** Asks in a chat of its own. Returns the approvals of the chat, in order. */
  async function ask(id: string, text: string): Promise<readonly Approval[]> {
    const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
    await testBridge.page().post({ id, messages: [message] })
    return ledgerOf().list({ chat: { appName: APP, principalId: 'hanako', chatId: id }, limit: 9 })
  }

  function ledgerOf(): Ledger {
    return new Ledger({ store: testBridge.store.approvals, appName: APP, leaseMs: 0 })
  }

  test.each(SHOWN)('[CV795] an approval that is $name is shown so', async (shown) => {
    const { name, recipient = 'A', act, part, data } = shown
    const chatId = name.replaceAll(' ', '-')
    const [approval = failWithoutApproval()] = await ask(chatId, callPayment(50, recipient))
    await act(ledgerOf(), approval, ledgerOf())
    const page = testBridge.page()
    const messages = await page.messages(chatId)
    expect(messages.at(-1)?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'tool-process_payment', input: approval.args, ...part },
      { type: 'data-approval', id: approval.id, data: { approvalId: approval.id, ...data } },
    ])
    await expectValid(messages)
    // Loading a page sends nothing, in any client.
    for (const stock of [...stockClients, ...ourClients]) {
      const chat = await page.open(stock, { id: chatId })
      await chat.resume()
      await chat.rest()
      expect(chat.error).toBeUndefined()
      expect(toolParts(chat.lastMessage)).toMatchObject([part])
    }
    expect(page.sent).toEqual([])
  })

  test('[CV795] an answer, a refusal to answer and a question that ended are shown', async () => {
    const question = `[[call adk_request_input ${JSON.stringify({ message: 'Where to?' })}]]`
    const cases: readonly (readonly [string, Act, object])[] = [
      ['answered', decide({ payload: 'Nara' }), { state: 'output-available', output: 'Nara' }],
      ['declined', decide({ approved: false }), { state: 'output-error' }],
      ['ended', (ledger, { id }) => ledger.cancel(id, 'no more'), { state: 'output-error' }],
    ]
    for (const [chatId, act, part] of cases) {
      const [approval = failWithoutApproval()] = await ask(chatId, question)
      await act(ledgerOf(), approval, ledgerOf())
      const messages = await testBridge.page().messages(chatId)
      expect(toolParts(messages.at(-1))).toMatchObject([part])
      expect(dataOf(messages.at(-1))).not.toMatchObject({ state: 'requested' })
      await expectValid(messages)
    }
  })

  test('[CV795] an approved browser tool is shown as decided when it is handed over, so that no page runs it twice', async () => {
    const [approval = failWithoutApproval()] = await ask('browser', '[[call get_location {}]]')
    await decide()(ledgerOf(), approval, ledgerOf())
    const before = (await testBridge.page().messages('browser')).at(-1)
    expect(toolParts(before)).toMatchObject([{ state: 'approval-requested' }])
    expect(dataOf(before)).toMatchObject({ state: 'requested' })
  })

  test.each([...stockClients, ...ourClients])(
    '[AP13] [CV797] $name: a person who may not decide one call decides another one after a manager has decided the first',
    async (stock) => {
      const chatId = `mixed-${stock.name.replaceAll(' ', '-')}`
      const text = `${callPayment(30, 'manager')}${callPayment(40, 'B')}[[then]][[say Paid.]]`
      const [first = failWithoutApproval()] = await ask(chatId, text)
      await decide({ by: MARI })(ledgerOf(), first, ledgerOf())
      const page = testBridge.page()
      const chat = await page.open(stock, { id: chatId })
      expect(chat.asked).toHaveLength(1)
      await chat.decide(true)
      expect(chat.error).toBeUndefined()
      expect(chat.text).toBe('Paid.')
      expect(toolParts(chat.lastMessage)).toMatchObject([
        { state: 'output-available' },
        { state: 'output-available' },
      ])
      expect(page.sent).toHaveLength(1)
    },
  )

  test.each(stockClients)(
    '[CV795] $name: a call whose approval has expired does not keep a person from deciding the next call',
    async (stock) => {
      const chatId = `expired-${stock.name.replaceAll(' ', '-')}`
      const text = `${callPayment(30, 'late')}${callPayment(40, 'B')}[[then]][[say Done.]]`
      const [first = failWithoutApproval()] = await ask(chatId, text)
      await expire(ledgerOf(), first, ledgerOf())
      const page = testBridge.page()
      const chat = await page.open(stock, { id: chatId })
      expect(chat.asked).toHaveLength(1)
      await chat.decide(true)
      expect(chat.error).toBeUndefined()
      expect(chat.text).toBe('Done.')
      expect(toolParts(chat.lastMessage)).toMatchObject([
        { state: 'output-error', errorText: EXPIRED },
        { state: 'output-available' },
      ])
      expect(page.sent).toHaveLength(1)
    },
  )

  test('[CV796] the ledger is read once for a chat that waits, and not at all for another chat', async () => {
    await ask('idle', '[[say Hello.]]')
    await ask('waits', `${callPayment(30, 'A')}${callPayment(40, 'B')}`)
    const { approvals } = testBridge.store
    const reads: string[] = []
    const restore = (['list', 'get', 'findByCall'] as const).map((name) => {
      const read = approvals[name].bind(approvals) as (...args: unknown[]) => unknown
      approvals[name] = ((...args: unknown[]) => {
        reads.push(name)
        return read(...args)
      }) as never
      return () => Reflect.deleteProperty(approvals, name)
    })
    await testBridge.page().messages('idle')
    expect(reads).toEqual([])
    await testBridge.page().messages('waits')
    expect(reads).toEqual(['list'])
    for (const each of restore) each()
  })
})

/** Opens a bridge whose payments wait. */
function openBlocked(before: Promise<void>): Promise<TestBridge> {
  return TestBridge.open({
    tools: (wallet) => [paymentTool(wallet, { before: () => before })],
  })
}

test.each([client, liveClient])(
  '[CV795] $name: while a call runs after its turn was stopped, a page that is opened shows it as approved, and then its result',
  async (stock) => {
    const gate = defer()
    await using testBridge = await openBlocked(gate.promise)
    const page = testBridge.page()
    const first = await page.open(stock)
    await first.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    const [id = ''] = first.asked
    await page.decide(id, { approved: true })
    await page.untilState(id, 'executing')
    const headers = { 'x-api-key': 'hanako' }
    await fetch(`${testBridge.url}/chats/chat-1/stop`, { method: 'POST', headers })
    const other = testBridge.page()
    const chat = await other.open(stock)
    expect(chat.asked).toEqual([])
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'approval-responded', approval: { id, approved: true } },
    ])
    expect(other.sent).toEqual([])
    // AP795: a page without a feed receives the result if it sends its messages again.
    const outcome = chat.sendAsItIs()
    gate.resolve()
    await outcome
    expect(chat.error).toBeUndefined()
    expect(toolParts(chat.lastMessage)).toMatchObject([{ output: { balance: 950 } }])
    expect(testBridge.wallet.payments).toHaveLength(1)
  },
)

// Not in a live session: no turn runs there while calls run.
test('[CV798] a page that resumes a turn is not asked for a call that was approved while the turn ran', async () => {
  const gate = defer()
  await using testBridge = await openBlocked(gate.promise)
  const page = testBridge.page()
  const first = await page.open(client)
  const calls = ['A', 'B', 'C'].map((recipient) => callPayment(50, recipient)).join('')
  await first.send(`${calls}[[then]][[say Paid.]]`)
  const [one = '', two = '', three = ''] = first.asked
  await page.decide(one, { approved: true })
  await page.untilState(one, 'executing')
  await page.decide(two, { approved: true })
  const chat = await testBridge.page().open(client)
  const resumed = chat.resume()
  const states = (): unknown[] => toolParts(chat.lastMessage).map(({ state }) => state)
  // The tool must not end before the page reads the turn.
  await chat.until(() => states()[1] === 'input-available')
  await chat.until(({ lastMessage }) => lastMessage?.parts.at(-1)?.type === 'data-approval')
  await chat.until(() => chat.asked.includes(three))
  expect(chat.asked).toEqual([three])
  gate.resolve()
  await resumed
  expect(states()).toEqual(['output-available', 'output-available', 'approval-requested'])
})

function dataOf(message: ChatMessage | undefined): unknown {
  return message?.parts.find(({ type }) => type === 'data-approval')?.data
}

function failWithoutClient(): never {
  throw new Error('There is no client.')
}

function failWithoutApproval(): never {
  throw new Error('There is no approval.')
}

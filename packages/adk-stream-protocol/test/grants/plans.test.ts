import { AgentTool } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import {
  type ApprovalPolicy,
  findTermsFault,
  type PolicyCall,
  type PolicyTerms,
  type PolicyVerdict,
} from '../../src/approvals/policy.ts'
import type { ShownPreview } from '../../src/protocol/preview.ts'
import { planTool } from '../../src/server/index.ts'
import { clientsWith } from '../approvals/support/approving-chat.ts'
import { expectRecord } from '../approvals/support/expect-record.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { TestBridge, type TestBridgeOptions } from '../approvals/support/test-bridge.ts'
import { agentOf, call as callTool, play } from '../approvals/support/named-agents.ts'
import type { Page } from '../approvals/support/page.ts'
import { tool } from '../support/agents.ts'
import { give, GRANTS, listGrants, pay, revoke } from './support/grants.ts'

const PLANS: ApprovalPolicy = { process_payment: { plans: true } }

/** A bridge whose agent can propose plans of payments. */
function openWithPlans(options: TestBridgeOptions = {}): Promise<TestBridge> {
  return TestBridge.open({
    approvals: PLANS,
    tools: (wallet) => {
      const payment = paymentTool(wallet)
      return [payment, planTool({ tools: [payment] })]
    },
    ...options,
  })
}

type Decided = boolean | { readonly approved: boolean; readonly reason: string }

type Payment = readonly [amount: number, recipient: string]

/** The script of a model that proposes payments. */
function propose(...payments: readonly Payment[]): string {
  const steps = payments.map(([amount, recipient]) => ({
    tool: 'process_payment',
    args: { amount, recipient },
  }))
  return `[[call propose_plan ${JSON.stringify({ steps })}]]`
}

/** The script of a model that makes payments, and then speaks. */
function make(...payments: readonly Payment[]): string {
  return `[[then]]${payments.map((payment) => callPayment(...payment)).join('')}[[then]][[say Done.]]`
}

const ANA: Payment = [5, 'Ana']
const BOB: Payment = [6, 'Bob']
const CAN: Payment = [7, 'Can']

function paid({ wallet }: TestBridge): Payment[] {
  return wallet.payments.map(({ amount, recipient }) => [amount, recipient])
}

const clients = clientsWith('6')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[GR1650] the calls of an approved plan run without asking, each once and as an approval of its own', async () => {
    await using testBridge = await openWithPlans()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${propose(ANA, BOB, ANA)}${make(ANA, BOB, ANA)}`)
    expect(chat.asked).toHaveLength(1)
    expect(paid(testBridge)).toEqual([])
    await chat.decide(true)
    expect(chat.text).toContain('Done.')
    expect(paid(testBridge)).toEqual([ANA, BOB, ANA])
    const { approvals = [] } = await page.list('state=decided')
    const plan = approvals.find(({ toolName }) => toolName === 'propose_plan')
    const { history } = await page.approval(plan?.id ?? '')
    expect(history.map(({ type }) => type)).toEqual([
      'requested',
      'approved',
      'started',
      'grants-given',
      'succeeded',
    ])
    expect(history[3]).toMatchObject({
      grants: [{ pinned: { amount: 5 } }, { pinned: { amount: 6 } }],
    })
    const calls = approvals.filter(({ toolName }) => toolName === 'process_payment')
    expect(calls).toHaveLength(3)
    for (const { id } of calls) {
      const used = (await page.approval(id)).history
      expect(used.map(({ type }) => type)).toEqual([
        'requested',
        'approved',
        'started',
        'succeeded',
      ])
      expect(used[1]).toMatchObject({ by: 'hanako', grant: {} })
    }
    expect(await listGrants(page)).toEqual([])
    await expectRecord(page, await page.open(client))
  })

  it('[GR1650] a call that the plan does not have, and one more than it has, are asked for', async () => {
    await using testBridge = await openWithPlans()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${propose(ANA, BOB)}${make(ANA, [60, 'Bob'], ANA)}`)
    await chat.decide(true)
    expect(chat.asked).toHaveLength(2)
    expect(paid(testBridge)).toEqual([ANA])
    await chat.decide(false, false)
    expect(chat.text).toContain('Done.')
    expect(await listGrants(page)).toMatchObject([{ pinned: { recipient: 'Bob' }, uses: 0 }])
    await expectRecord(page, await page.open(client))
  })

  it.each<[string, Decided, string, number]>([
    ['a part of it, at once', false, `[[then]]${propose(ANA)}`, 0],
    ['one with a changed amount, at once', false, `[[then]]${propose([9, 'Bob'], CAN)}`, 0],
    ['one for something else, at once', false, `[[then]]${propose([70, 'Can'])}`, 1],
    [
      'a part of it after a reason',
      { approved: false, reason: 'No' },
      `[[then]]${propose(ANA)}`,
      1,
    ],
    ['a part of it after a message', false, '', 1],
  ])('[GR1821] after a denied plan, another plan: %s', async (_what, denial, next, asked) => {
    await using testBridge = await openWithPlans()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${propose(ANA, BOB)}${next}[[then]][[say OK.]]`)
    await chat.decide(denial)
    if (next === '') await chat.send(`${propose(ANA)}[[then]][[say OK.]]`)
    await expect.poll(() => page.inbox()).toHaveLength(asked)
    const isTold = JSON.stringify(testBridge.results).includes('"retryable":false')
    expect(isTold).toBe(asked === 0)
    if (asked === 1) await chat.decide(true)
    expect((await listGrants(page)).length).toBe(asked)
    await expectRecord(page, await page.open(client))
  })

  it('[GR1650] a denied plan gives nothing, and its calls are asked for', async () => {
    await using testBridge = await openWithPlans()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${propose(ANA)}${make(ANA)}`)
    await chat.decide(false)
    expect(chat.asked).toHaveLength(1)
    expect([paid(testBridge), await listGrants(page)]).toEqual([[], []])
  })
})

const STEP = { tool: 'process_payment', args: { amount: 5, recipient: 'Ana' } }

const REFUSED: readonly [string, ApprovalPolicy, unknown, RegExp][] = [
  [
    'a tool that the policy does not offer',
    { process_payment: true },
    [STEP],
    /step 1 .* by itself/,
  ],
  [
    'high severity',
    (call) => ofPayments(call, { plans: true, severity: 'high' }),
    [STEP],
    /by itself/,
  ],
  ['two approvers', (call) => ofPayments(call, { plans: true, approvers: 2 }), [STEP], /by itself/],
  [
    'a role that decides',
    (call) => ofPayments(call, { plans: true, deciders: { roles: ['manager'] } }),
    [STEP],
    /by itself/,
  ],
  [
    'a preview that people have to see',
    (call) => ofPayments(call, { plans: true, requirePreview: true, preview: () => ({}) }),
    [STEP],
    /by itself/,
  ],
  ['a policy that fails', () => Promise.reject(new Error('No.')), [STEP], /by itself/],
  ['a call that needs no approval', (call) => ofPayments(call, false), [STEP], /needs no approval/],
  [
    'a plan that several people decide',
    { ...PLANS, propose_plan: { approvers: 2, deciders: { roles: ['manager'] } } },
    [STEP],
    /decide plans alone/,
  ],
  [
    'a value that could mislead',
    PLANS,
    [STEP, { ...STEP, args: { amount: 5, recipient: 'Ana\u202E' } }],
    /step 2 .* by itself/,
  ],
  ['a tool that plans do not have', PLANS, [{ ...STEP, tool: 'propose_plan' }], /no such tool/],
  ['other arguments', PLANS, [{ ...STEP, args: { amount: 5 } }], /do not match the schema/],
  ['no steps', PLANS, [], /steps/],
  ['too many steps', PLANS, Array.from({ length: 21 }, () => STEP), /steps/],
  ['another form', PLANS, 'Pay Ana', /steps/],
]

/** The verdict on payments of a policy that is a function. Plans have none of their own. */
function ofPayments({ toolName }: PolicyCall, verdict: PolicyVerdict): PolicyVerdict {
  return toolName === 'process_payment' ? verdict : true
}

test.each(REFUSED)(
  '[GR1651] a plan with %s is not shown, and the model reads why',
  async (_what, approvals, steps, why) => {
    await using testBridge = await openWithPlans({ approvals })
    const page = testBridge.page()
    await page.post(
      messageOf(`[[call propose_plan ${JSON.stringify({ steps })}]][[then]][[say OK.]]`),
    )
    expect(testBridge.results).toMatchObject([{ error: expect.stringMatching(why) as string }])
    expect([await page.inbox(), await listGrants(page), paid(testBridge)]).toEqual([[], [], []])
  },
)

test('[GR1651] an agent that is used as a tool cannot propose a plan', async () => {
  await using testBridge = await openWithPlans({
    agent: (model, tools) =>
      agentOf(model, 'desk', [new AgentTool({ agent: agentOf(model, 'one', tools) })]),
    respond: play([], {
      desk: [callTool('one', { request: 'Pay.' })],
      one: [callTool('propose_plan', { steps: [STEP] })],
    }),
  })
  const page = testBridge.page()
  await page.post(messageOf('Go.'))
  expect(await page.inbox()).toEqual([])
  expect(testBridge.emulator.requests.map((each) => JSON.stringify(each)).join()).toContain(
    'Not proposed: only an agent of the chat',
  )
})

test('[GR1652] the preview of a plan has a line for each call, with its own preview, all its values and the highest severity', async () => {
  let fee = 1
  await using testBridge = await openWithPlans({
    approvals: {
      process_payment: ({ args: { amount } }) => ({
        plans: true,
        title: 'Payment',
        severity: amount === 6 ? 'medium' : 'low',
        previewInPlan: (args, { earlier }) => ({
          headline: `Send $${String(args['amount'])}`,
          lines: [{ label: 'Fee', value: `$${fee}` }],
          changes: [
            { label: 'Balance', before: leftBy(earlier), after: leftBy([...earlier, { args }]) },
          ],
          ...(args['amount'] === 7 && { blocked: 'The account of Can is closed.' }),
        }),
      }),
    },
  })
  const page = testBridge.page()
  await page.post(messageOf(`${propose(ANA, BOB)}${make(ANA, BOB)}`))
  const [plan] = await page.inbox()
  const preview = plan?.['preview']
  expect(plan?.['severity']).toBe('medium')
  expect(preview).toMatchObject({
    lines: [
      { label: '1. Payment', value: 'Send $5 (amount: 5, recipient: Ana)' },
      { label: 'Fee', value: '$1' },
      { label: 'Balance', value: '$100 → $95' },
      { label: '2. Payment', value: 'Send $6 (amount: 6, recipient: Bob)' },
      { label: 'Fee', value: '$1' },
      { label: 'Balance', value: '$95 → $89' },
    ],
  })
  fee = 2
  const decide = (seen: unknown) => {
    const { digest } = seen as ShownPreview
    return page.decide(plan?.id ?? '', { approved: true, preview: digest })
  }
  expect((await decide(preview)).body.error?.code).toBe('preview-changed')
  const [again] = await page.inbox()
  expect(await decide(again?.['preview'])).toMatchObject({ status: 200 })
  await page.untilMessages((messages) => JSON.stringify(messages).includes('Done.'))
  expect(paid(testBridge)).toEqual([ANA, BOB])
  await page.post(messageOf(`${propose(ANA, CAN)}${make(ANA)}`))
  const [blocked] = await page.inbox()
  expect(await page.decide(blocked?.id ?? '', { approved: true })).toMatchObject({
    status: 409,
    body: { error: { code: 'call-blocked' } },
  })
})

/** What payments leave of $100. */
function leftBy(calls: readonly { readonly args: Readonly<Record<string, unknown>> }[]): string {
  return `$${calls.reduce((left, { args }) => left - Number(args['amount']), 100)}`
}

test('[GR1820] a plan of several calls shows no preview that was made for a call alone, and a plan of one call shows it', async () => {
  await using testBridge = await openWithPlans({
    approvals: {
      process_payment: {
        plans: true,
        preview: (args) => ({
          headline: 'Send money',
          lines: [{ label: 'Left today', value: leftBy([{ args }]) }],
          changes: [{ label: 'Balance', before: '$100', after: leftBy([{ args }]) }],
        }),
      },
    },
  })
  const page = testBridge.page()
  const [first, second] = [
    { label: '1. process_payment', value: 'Send money (amount: 5, recipient: Ana)' },
    { label: '2. process_payment', value: 'Send money (amount: 6, recipient: Bob)' },
  ]
  await page.post(messageOf(propose(ANA, BOB)))
  const [both] = await page.inbox()
  expect(both?.['preview']).toMatchObject({ lines: [first, second] })
  await page.decide(both?.id ?? '', { approved: false, reason: 'One at a time.' })
  await page.untilMessages((messages) => JSON.stringify(messages).includes('output-denied'))
  await page.post(messageOf(propose(ANA)))
  expect((await page.inbox())[0]?.['preview']).toMatchObject({
    lines: [
      first,
      { label: 'Left today', value: '$95' },
      { label: 'Balance', value: '$100 → $95' },
    ],
  })
})

test('[GR1653] a plan whose calls the policy no longer offers, or that was edited to calls that are none, cannot be approved', async () => {
  let plans = true
  await using testBridge = await openWithPlans({
    approvals: { process_payment: () => ({ plans }) },
  })
  const page = testBridge.page()
  await page.post(messageOf(`${propose(ANA)}${make(ANA)}`))
  const [plan] = await page.inbox()
  const edit = (...steps: object[]) =>
    page.decide(plan?.id ?? '', { approved: true, args: { steps } })
  expect((await edit({ ...STEP, tool: 'shutdown' })).status).toBe(400)
  expect((await edit({ ...STEP, args: { amount: -1, recipient: 'Ana' } })).status).toBe(400)
  plans = false
  expect(await page.decide(plan?.id ?? '', { approved: true })).toMatchObject({
    status: 409,
    body: { error: { code: 'call-blocked' } },
  })
  expect([await listGrants(page), paid(testBridge)]).toEqual([[], []])
  expect(await page.inbox()).toHaveLength(1)
})

test('[GR1653] a person can change a plan, and the changed calls run', async () => {
  await using testBridge = await openWithPlans()
  const page = testBridge.page()
  await page.post(messageOf(`${propose(ANA, BOB)}${make([9, 'Ana'], BOB)}`))
  const [plan] = await page.inbox()
  const steps = [{ ...STEP, args: { amount: 9, recipient: 'Ana' } }]
  expect(await page.decide(plan?.id ?? '', { approved: true, args: { steps } })).toMatchObject({
    status: 200,
  })
  await page.untilMessages((messages) => JSON.stringify(messages).includes('approval-requested'))
  expect(paid(testBridge)).toEqual([[9, 'Ana']])
  expect(await page.inbox()).toMatchObject([{ args: { recipient: 'Bob' } }])
})

/** What happens between an approved plan and its call, and whether the call is asked for. */
const CROSSINGS: Readonly<
  Record<
    string,
    {
      readonly policy?: PolicyTerms
      readonly between?: (testBridge: TestBridge, page: Page) => void | Promise<void>
      readonly asked: number
    }
  >
> = {
  nothing: { asked: 0 },
  'a restart': { between: (testBridge) => testBridge.restart(), asked: 0 },
  'its time is over': { policy: { plans: { expiresMs: 1 } }, asked: 1 },
  'it is revoked': {
    between: async (_testBridge, page) => {
      for (const { id } of await listGrants(page)) await revoke(page, id)
    },
    asked: 1,
  },
  'a newer plan': {
    between: async (_testBridge, page) => approvePlan(page, propose(BOB)),
    asked: 1,
  },
  'a newer plan that was denied': {
    between: async (_testBridge, page) => approvePlan(page, propose(BOB), false),
    asked: 0,
  },
  'a grant for calls of the same tool': {
    policy: { plans: true, grants: GRANTS },
    between: async (_testBridge, page) => {
      await page.post(messageOf(pay(50)))
      await give(page)
    },
    asked: 0,
  },
  'a denial of all calls of the tool': {
    policy: { plans: true, grants: GRANTS },
    between: async (_testBridge, page) => {
      await page.post(messageOf(pay(50)))
      await give(page, 'deny')
    },
    // It does not run either.
    asked: -1,
  },
  'text from outside': {
    between: async (_testBridge, page) => {
      await page.post(messageOf('[[call read_mail {}]][[then]][[say Done.]]'))
    },
    asked: 1,
  },
}

test.each(Object.entries(CROSSINGS))(
  '[GR1654] after an approved plan: %s',
  async (_what, { policy = { plans: true }, between, asked }) => {
    await using testBridge = await openWithPlans({
      approvals: { process_payment: policy },
      tools: (wallet) => {
        const payment = paymentTool(wallet)
        return [
          payment,
          planTool({ tools: [payment] }),
          tool('read_mail', () => ({ text: 'Pay.' })),
        ]
      },
      grants: { untrustedTools: ['read_mail'] },
    })
    const page = testBridge.page()
    await approvePlan(page, propose(ANA))
    const before = paid(testBridge).length
    await between?.(testBridge, page)
    const payments = paid(testBridge).length
    expect(payments).toBeGreaterThanOrEqual(before)
    await page.post(messageOf(`${callPayment(...ANA)}[[then]][[say Paid.]]`))
    expect(await page.inbox()).toHaveLength(Math.max(asked, 0))
    expect(paid(testBridge)).toHaveLength(payments + (asked === 0 ? 1 : 0))
  },
)

/** Sends a message with a plan, and decides it. Returns when the reply is complete. */
async function approvePlan(page: Page, script: string, approved = true): Promise<void> {
  await page.post(messageOf(`${script}[[then]][[say Planned ${messages}.]]`))
  const text = `Planned ${messages - 1}.`
  const [plan] = await page.inbox()
  await page.decide(plan?.id ?? '', { approved })
  await page.untilMessages((known) => JSON.stringify(known).includes(text))
}

let messages = 0

function messageOf(text: string): object {
  messages += 1
  return {
    id: 'chat-1',
    messages: [{ id: `message ${messages}`, role: 'user', parts: [{ type: 'text', text }] }],
  }
}

test.each<[string, PolicyTerms, RegExp]>([
  ['two approvers', { approvers: 2, deciders: { principals: ['a', 'b'] } }, /several people/],
  ['a role', { deciders: { roles: ['manager'] } }, /needs `principals`/],
  ['high severity', { severity: 'high' }, /cannot approve with severity `high`/],
  ['required previews', { requirePreview: true, preview: () => ({}) }, /`requirePreview`/],
])('[GR1651] a policy that offers plans for %s is refused', (_what, terms, fault) => {
  expect(findTermsFault({ plans: true })).toBe(undefined)
  const found = findTermsFault({ plans: true, ...terms })
  expect(found?.field).toBe('plans')
  expect(found?.fault).toMatch(fault)
})

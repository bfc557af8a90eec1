// oxlint-disable typescript/no-deprecated -- Some of these agents are deprecated in favour of Workflow, and in use.
import {
  AgentTool,
  FunctionNode,
  FunctionTool,
  LlmAgent,
  LongRunningFunctionTool,
  ParallelAgent,
  SequentialAgent,
  ToolNode,
  Workflow,
} from '@google/adk'
import type { BaseTool } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import type { ApprovalPolicy } from '../../src/approvals/policy.ts'
import { stockClient } from '../approvals/support/approving-chat.ts'
import { expectRecord } from '../approvals/support/expect-record.ts'
import {
  agentOf,
  call,
  type MakeAgent,
  play,
  type Plans,
} from '../approvals/support/named-agents.ts'
import type { Wallet } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { GRANTS, listGrants, offersOf } from './support/grants.ts'

const pay = call('process_payment', { amount: 5, recipient: '花子' })

/** Two messages that each pay once, and what is said in between. */
const ONE: Plans = { one: [pay, { type: 'say', text: 'Paid.' }, pay] }

const parameters = z.object({ amount: z.number(), recipient: z.string() })
const payment = { name: 'process_payment', description: 'Pays somebody.', parameters }

const sequence: MakeAgent = (model, tools) =>
  new SequentialAgent({
    name: 'steps',
    subAgents: [agentOf(model, 'one', tools), agentOf(model, 'two')],
  })

interface Place {
  readonly agent: MakeAgent
  readonly plans?: Plans
  /** Default: payments are asked for, and grants are offered. */
  readonly approvals?: ApprovalPolicy
  readonly tools?: (wallet: Wallet) => BaseTool[]
  /** How many of the two calls are asked for. Default: the first. */
  readonly asked?: number
}

/** Where a gated call is made, and by which kind of tool. */
const PLACES: Readonly<Record<string, Place>> = {
  'a step': { agent: sequence },
  'a branch': {
    agent: (model, tools) =>
      new ParallelAgent({
        name: 'branches',
        subAgents: [agentOf(model, 'one', tools), agentOf(model, 'two')],
      }),
  },
  'an agent that another one transfers to': {
    agent: (model, tools) =>
      new LlmAgent({
        name: 'desk',
        model,
        instruction: 'I am desk.',
        subAgents: [agentOf(model, 'one', tools)],
      }),
    plans: { ...ONE, desk: [call('transfer_to_agent', { agentName: 'one' })] },
  },
  'an agent in a workflow': {
    agent: (model, tools) =>
      new Workflow({
        name: 'flow',
        edges: [['START', agentOf(model, 'one', tools), agentOf(model, 'two')]],
      }),
  },
  'a tool that is a node': {
    agent: (_model, [tool]) =>
      new Workflow({
        name: 'flow',
        edges: [
          [
            'START',
            new FunctionNode('order', () => ({ amount: 5, recipient: '花子' })),
            new ToolNode(tool as BaseTool),
          ],
        ],
      }),
  },
  'an agent that is used as a tool': {
    agent: (model, tools) =>
      agentOf(model, 'desk', [new AgentTool({ agent: agentOf(model, 'one', tools) })]),
    plans: {
      ...ONE,
      desk: [
        call('one', { request: 'Pay.' }),
        { type: 'say', text: 'Paid.' },
        call('one', { request: 'Pay.' }),
      ],
    },
    asked: 2,
  },
  'an agent that is used as a tool, whose own call is asked for': {
    agent: (model, tools) =>
      agentOf(model, 'desk', [new AgentTool({ agent: agentOf(model, 'one', tools) })]),
    approvals: { one: { grants: GRANTS }, process_payment: false },
    plans: {
      one: [pay, { type: 'say', text: 'Paid.' }, pay],
      desk: [
        call('one', { request: 'Pay.' }),
        { type: 'say', text: 'Paid.' },
        call('one', { request: 'Pay.' }),
      ],
    },
    asked: 2,
  },
  'a tool that asks by itself': {
    agent: sequence,
    tools: (wallet) => [
      new FunctionTool({
        ...payment,
        execute: (args, context) => {
          if (!context?.toolConfirmation?.confirmed) {
            context?.requestConfirmation({ hint: 'Sure?' })
            return { status: 'waiting' }
          }
          return { balance: wallet.pay(args) }
        },
      }),
    ],
  },
  'a long-running tool': {
    agent: sequence,
    tools: (wallet) => [
      new LongRunningFunctionTool({
        ...payment,
        requireConfirmation: true,
        execute: (args) => ({ status: 'started', balance: wallet.pay(args) }),
      }),
    ],
  },
}

test.each(Object.entries(PLACES))(
  '[GR1620] [GR1621] [GR1623] a grant and a call in %s',
  async (_where, { agent, plans = ONE, tools, asked = 1, approvals }) => {
    await using testBridge = await TestBridge.open({
      isLive: false,
      approvals: approvals ?? { process_payment: { grants: GRANTS } },
      agent,
      respond: play([], plans),
      ...(tools && { tools }),
    })
    const page = testBridge.page()
    const chat = await page.open(stockClient('7'), { autoSend: 'both' })
    await chat.send('Go.')
    const [first] = await page.inbox()
    const offer = offersOf(first).find(({ effect }) => effect === 'approve')
    // What is offered also covers.
    expect(offer !== undefined).toBe(asked === 1)
    const answer = await page.decide(first?.id ?? '', {
      approved: true,
      ...(offer && { offer: offer.id }),
    })
    expect(answer.status).toBe(200)
    await page.untilMessages(() => testBridge.wallet.payments.length === 1)
    await chat.rest()
    const again = await page.open(stockClient('7'), { autoSend: 'both' })
    await again.send('Again.')
    const waiting = await page.inbox()
    for (const { id } of waiting) await page.decide(id, { approved: true })
    await page.untilMessages(() => testBridge.wallet.payments.length === 2)
    expect(1 + waiting.length).toBe(asked)
    expect(await listGrants(page)).toMatchObject(offer ? [{ uses: 1 }] : [])
    expect(testBridge.errors).toEqual([])
    await again.rest()
    await expectRecord(page, await page.open(stockClient('7')))
  },
)

import type { BaseLlm, BaseTool, EdgeItem, NodeContext } from '@google/adk'
import {
  AgentTool,
  createEvent,
  FunctionNode,
  FunctionTool,
  JoinNode,
  node,
  ParallelWorker,
  ToolNode,
  Workflow,
} from '@google/adk'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { textOf, toolParts } from '../support/chat-probe.ts'
import { clientsWith, stockClient } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { agentOf, GO, type Log, pay, play, recipients } from './support/named-agents.ts'
import { TestBridge, type TestBridgeOptions } from './support/test-bridge.ts'

/** A node that creates the arguments of a payment. */
const order = (recipient = 'A') => new FunctionNode('order', () => ({ amount: 5, recipient }))

/** The last node repeats the result of the payment. */
const tell = (log: Log) =>
  new FunctionNode('tell', (_context, input) => {
    log.push('tell')
    return `Told: ${JSON.stringify(input)}`
  })

const open = (log: Log, options: Partial<TestBridgeOptions> = {}) =>
  TestBridge.open({
    isLive: false,
    respond: play(log),
    agent: (_model, [tool]) =>
      new Workflow({
        name: 'flow',
        edges: [['START', order(), new ToolNode(tool as BaseTool), tell(log)]],
      }),
    ...options,
  })

describe.each(clientsWith('7'))('$name', (client) => {
  test.each([
    [true, 'output-available'],
    [false, 'output-denied'],
  ])(
    '[AP711] a tool that is a node asks first, approved %s, and its result flows on',
    async (approved, state) => {
      const log: Log = []
      await using testBridge = await open(log)
      const page = testBridge.page()
      const chat = await page.open(client, { autoSend: 'both' })
      await chat.send('Go.')
      expect(toolParts(chat.lastMessage)).toMatchObject([
        {
          type: 'tool-process_payment',
          state: 'approval-requested',
          input: { amount: 5, recipient: 'A' },
        },
      ])
      expect([recipients(testBridge), log]).toEqual([[], []])
      await chat.decide(approved)
      await chat.rest()
      expect(recipients(testBridge)).toEqual(approved ? ['A'] : [])
      expect(log).toEqual(['tell'])
      expect(toolParts(chat.lastMessage)).toMatchObject([{ state }])
      expect(textOf(chat.lastMessage)).toContain(approved ? '"success":true' : '"status":"denied"')
      await expectRecord(page, chat)
      expect(testBridge.errors).toEqual([])
    },
  )
})

test('[AP800] the call of a tool node that returned a bigint ends as one that has run', async () => {
  const payment = new FunctionTool({
    name: 'process_payment',
    description: 'Pays.',
    parameters: z.object({ amount: z.number(), recipient: z.string() }),
    requireConfirmation: true,
    execute: () => ({ cents: 500n }),
  })
  await using testBridge = await open([], {
    tools: () => [payment],
    agent: (_model, [tool]) =>
      new Workflow({ name: 'flow', edges: [['START', order(), new ToolNode(tool as BaseTool)]] }),
  })
  const page = testBridge.page()
  const chat = await page.open(stockClient('7'))
  await chat.send('Go.')
  await chat.decide(true)
  expect(toolParts((await page.messages()).at(-1))).toMatchObject([
    { state: 'output-available', output: { unrecorded: expect.any(String) as string } },
  ])
})

test.each([
  ['a bigint', 500n],
  ['an object with a bigint', { cents: 500n }],
  ['a cycle', createCycle()],
])('[AP800] a turn continues after a function node that returned %s', async (_what, value) => {
  const log: Log = []
  const pays = new FunctionNode('pays', () => {
    log.push('pays')
    return value
  })
  const says = new FunctionNode('says', () => {
    log.push('says')
    return 'Done.'
  })
  await using testBridge = await open(log, {
    agent: () => new Workflow({ name: 'flow', edges: [['START', pays, says]] }),
  })
  const page = testBridge.page()
  const chat = await page.open(stockClient('7'))
  await chat.send('Go.')
  await chat.rest()
  expect(chat.error).toBeUndefined()
  expect(log).toEqual(['pays', 'says'])
  expect(textOf((await page.messages()).at(-1))).toContain('Done.')
  expect(testBridge.errors.map(String)).toEqual([
    expect.stringContaining('JSON cannot carry the output of') as string,
  ])
})

function createCycle(): object {
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  return cycle
}

test('[AP711] the call of a tool node is edited, expires, or is the whole agent', async () => {
  const log: Log = []
  await using testBridge = await open(log, {
    approvals: ({ args }) => ({ ...(args['recipient'] === 'late' && { deadlineMs: 1 }) }),
    agent: (_model, [tool]) => new ToolNode(tool as BaseTool),
  })
  const page = testBridge.page()
  const say = (id: string, recipient: string) =>
    page.post({
      id: 'chat-1',
      messages: [
        {
          id,
          role: 'user',
          parts: [{ type: 'text', text: JSON.stringify({ amount: 5, recipient }) }],
        },
      ],
    })
  await say('m1', 'A')
  const [asked] = await page.inbox()
  const edited = { approved: true, args: { amount: 4, recipient: 'A', currency: 'USD' } }
  expect((await page.decide(String(asked?.id), edited)).status).toBe(200)
  await page.untilMessages(
    (messages) => toolParts(messages.at(-1))[0]?.state === 'output-available',
  )
  expect(testBridge.wallet.payments).toMatchObject([{ amount: 4, recipient: 'A' }])
  await say('m2', 'late')
  await page.untilMessages((messages) => toolParts(messages.at(-1))[0]?.state === 'output-error')
  expect(recipients(testBridge)).toEqual(['A'])
  expect(testBridge.errors).toEqual([])
})

/** The shapes in which a tool can be a node. Each of them pays A and B, and nothing else. */
const SHAPES: Readonly<Record<string, (tool: BaseTool, log: Log, model: BaseLlm) => Root>> = {
  'parallel tools': (tool, log) => {
    const each = ['A', 'B'].map((recipient) => {
      const name = `pay${recipient}`
      return [
        new FunctionNode(`order${recipient}`, () => ({ amount: 5, recipient })),
        node(new ToolNode(tool), { name }),
      ] as const
    })
    const join = new JoinNode({ name: 'join' })
    return new Workflow({
      name: 'flow',
      edges: [...each.map((pair): EdgeItem => ['START', ...pair, join]), [join, tell(log)]],
    })
  },
  'a worker for each item': (tool, log) => {
    const orders = new FunctionNode('orders', () =>
      ['A', 'B'].map((recipient) => ({ amount: 5, recipient })),
    )
    const worker = new ParallelWorker(new ToolNode(tool))
    return new Workflow({ name: 'flow', edges: [['START', orders, worker, tell(log)]] })
  },
  'a loop': (tool, log) => {
    const next = node(
      () => {
        const recipient = ['A', 'B'][log.filter((it) => it === 'next').length]
        log.push('next')
        const route = recipient === undefined ? 'over' : 'pay'
        return createEvent({ route, output: { amount: 5, recipient } })
      },
      { name: 'next' },
    )
    const paying = new ToolNode(tool)
    return new Workflow({
      name: 'flow',
      edges: [
        ['START', next],
        [next, { pay: paying, over: tell(log) }],
        [paying, next],
      ],
    })
  },
  'tools in nested workflows': (tool, log) => {
    const inner = (recipient: string) =>
      new Workflow({
        name: `inner${recipient}`,
        edges: [['START', new FunctionNode('order', () => ({ amount: 5, recipient })), tool]],
      })
    return new Workflow({ name: 'flow', edges: [['START', inner('A'), inner('B'), tell(log)]] })
  },
  'a function that runs tools': (tool, log) => {
    const both = new FunctionNode(
      'both',
      async (context: NodeContext) => {
        await context.runNode(tool, { amount: 5, recipient: 'A' })
        await context.runNode(tool, { amount: 5, recipient: 'B' })
        return 'both'
      },
      { rerunOnResume: true },
    )
    return new Workflow({ name: 'flow', edges: [['START', both, tell(log)]] })
  },
  'an agent used as a tool that is a node': (tool, log, model) => {
    const desk = new AgentTool({ agent: agentOf(model, 'desk', [tool]) })
    const ask = new FunctionNode('ask', () => ({ request: 'Pay.' }))
    return new Workflow({ name: 'flow', edges: [['START', ask, desk, tell(log)]] })
  },
}

type Root = Workflow

test.each(Object.keys(SHAPES))(
  '[AP711] each call of a tool node asks, also after a restart, and runs once: %s',
  async (name) => {
    const log: Log = []
    const shape = SHAPES[name]
    await using testBridge = await open(log, {
      // Another server waits this long for the one that was to report the outcome.
      limits: { leaseMs: 500 },
      respond: play(log, { desk: [[pay('A'), pay('B')]] }),
      agent: (model, [tool]) => shape?.(tool as BaseTool, log, model) as Root,
    })
    const page = testBridge.page()
    await page.post(GO)
    for (let decided = 0; decided < 2; decided += 1) {
      await page.untilMessages(() => true)
      const [asked] = await page.inbox()
      await testBridge.restart()
      expect((await page.decide(String(asked?.id), { approved: true })).status).toBe(200)
      await page.untilState(String(asked?.id), 'succeeded')
      await page.untilInbox(1 - decided)
    }
    await page.untilMessages((messages) => textOf(messages.at(-1)).includes('Told: '))
    expect(recipients(testBridge).toSorted()).toEqual(['A', 'B'])
    expect(log.filter((it) => it === 'tell')).toHaveLength(1)
    const parts = toolParts((await page.messages()).at(-1))
    expect(parts.map(({ state }) => state)).toEqual(parts.map(() => 'output-available'))
    expect(await page.inbox()).toEqual([])
    expect(testBridge.errors).toEqual([])
  },
)

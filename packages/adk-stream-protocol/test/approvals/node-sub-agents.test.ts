import type { BaseLlm, BaseTool, LlmAgent } from '@google/adk'
import { FunctionNode, JoinNode, Workflow } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import {
  agentOf,
  call,
  GO,
  type Log,
  pay,
  play,
  type Plans,
  recipients,
} from './support/named-agents.ts'
import { TestBridge } from './support/test-bridge.ts'

const to = (agentName: string) => call('transfer_to_agent', { agentName })

/** An agent that can transfer to others. */
function above(agent: LlmAgent, ...subAgents: LlmAgent[]): LlmAgent {
  for (const subAgent of subAgents) subAgent.parentAgent = agent
  agent.subAgents.push(...subAgents)
  return agent
}

/** The node `front`, with `payer` below it and `clerk` below that. Any of them may pay. The node `last` repeats the result. */
const flow = (log: Log) => (model: BaseLlm, tools: BaseTool[]) => {
  const clerk = agentOf(model, 'clerk', tools)
  const payer = above(agentOf(model, 'payer', tools), clerk)
  const front = above(agentOf(model, 'front', tools), payer)
  const last = new FunctionNode('last', (_context, input) => {
    log.push('last')
    return `Last: ${String(input)}`
  })
  return new Workflow({ name: 'flow', edges: [['START', front, last]] })
}

interface Case {
  readonly name: string
  readonly plans: Plans
  /** The models that are called, in order. */
  readonly asked: readonly string[]
  readonly paid: readonly string[]
}

const CASES: readonly Case[] = [
  {
    name: 'the agent below pays',
    plans: { front: [to('payer')], payer: [pay('A')] },
    asked: ['front', 'payer', 'payer'],
    paid: ['A'],
  },
  {
    name: 'the agent two levels below pays twice',
    plans: { front: [to('payer')], payer: [to('clerk')], clerk: [pay('A'), pay('B')] },
    asked: ['front', 'payer', 'clerk', 'clerk', 'clerk'],
    paid: ['A', 'B'],
  },
  {
    name: 'the node and the agents below pay one after the other',
    plans: { front: [pay('A'), to('payer')], payer: [pay('B'), to('clerk')], clerk: [pay('C')] },
    asked: ['front', 'front', 'payer', 'payer', 'clerk', 'clerk'],
    paid: ['A', 'B', 'C'],
  },
  {
    name: 'the agent below pays and transfers back to the node, which pays',
    plans: { front: [to('payer'), pay('B')], payer: [pay('A'), to('front')] },
    asked: ['front', 'payer', 'payer', 'front', 'front'],
    paid: ['A', 'B'],
  },
]

const open = (log: Log, { plans }: Case) =>
  TestBridge.open({ isLive: false, respond: play(log, plans), agent: flow(log) })

const clients = clientsWith('7')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it.each(CASES)('[AP712] a node waits where it has transferred to: $name', async (given) => {
    const log: Log = []
    await using testBridge = await open(log, given)
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send('Go.')
    for (const recipient of given.paid) {
      expect(toolParts(chat.lastMessage).at(-1)).toMatchObject({
        state: 'approval-requested',
        input: { recipient },
      })
      await chat.decide(true)
      await chat.rest()
    }
    expect(log).toEqual([...given.asked, 'last'])
    expect(recipients(testBridge)).toEqual(given.paid)
    const speaker = given.asked.at(-1) ?? ''
    expect(textOf(chat.lastMessage)).toBe(`${speaker}. Last: ${speaker}. `)
    await expectRecord(page, chat)
    expect(testBridge.errors).toEqual([])
  })
})

test.each(CASES)(
  '[AP712] a denial reaches the agent that asked, also after a restart: $name',
  async (given) => {
    const log: Log = []
    await using testBridge = await open(log, given)
    const page = testBridge.page()
    await page.post(GO)
    for (const [index] of given.paid.entries()) {
      await expect.poll(() => page.inbox()).toHaveLength(1)
      await page.untilMessages(() => true)
      await testBridge.restart()
      const [asked] = await page.inbox()
      await page.decide(String(asked?.id), { approved: false, reason: 'No.' })
      await page.untilMessages((messages) => {
        const parts = toolParts(messages.at(-1)).filter(({ type }) => type.includes('payment'))
        return parts[index]?.state === 'output-denied'
      })
    }
    await page.untilMessages((messages) => textOf(messages.at(-1)).includes('Last: '))
    expect(log).toEqual([...given.asked, 'last'])
    expect(recipients(testBridge)).toEqual([])
    expect(testBridge.errors).toEqual([])
  },
)

test('[AP712] parallel nodes wait in the agents below them, and each continues once', async () => {
  const log: Log = []
  await using testBridge = await TestBridge.open({
    isLive: false,
    respond: play(log, {
      one: [to('payer')],
      two: [to('clerk')],
      payer: [pay('A')],
      clerk: [pay('B')],
    }),
    agent: (model, tools) => {
      const one = above(agentOf(model, 'one', []), agentOf(model, 'payer', tools))
      const two = above(agentOf(model, 'two', []), agentOf(model, 'clerk', tools))
      const join = new JoinNode({ name: 'join' })
      const last = new FunctionNode('last', (_context, input) => `Last: ${JSON.stringify(input)}`)
      return new Workflow({
        name: 'flow',
        edges: [
          ['START', one, join],
          ['START', two, join],
          [join, last],
        ],
      })
    },
  })
  const page = testBridge.page()
  await page.post(GO)
  await page.untilInbox(2)
  for (const { id } of await page.inbox()) await page.decide(id, { approved: true })
  await page.untilMessages((messages) => textOf(messages.at(-1)).includes('Last: '))
  expect(recipients(testBridge).toSorted()).toEqual(['A', 'B'])
  expect(textOf((await page.messages()).at(-1))).toContain(
    'Last: {"one":"payer. ","two":"clerk. "}',
  )
  expect(log.toSorted()).toEqual(['clerk', 'clerk', 'one', 'payer', 'payer', 'two'])
  expect(testBridge.errors).toEqual([])
})

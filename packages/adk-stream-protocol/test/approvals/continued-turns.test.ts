import { AgentTool, FunctionNode, Workflow } from '@google/adk'
import type { Responder } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { defer } from '../../src/shared/async.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { agentOf, call, GO, pay, play, recipients, say, type Log } from './support/named-agents.ts'
import { TestBridge } from './support/test-bridge.ts'

type Outcome = 'approved' | 'denied' | 'expired'

interface Case {
  readonly root: 'agent' | 'workflow'
  /** The agent that pays: that of the chat, or one that it uses as a tool. */
  readonly payer: 'front' | 'desk'
  /** The agent whose model replies to a result when the server closes. */
  readonly closesAt: 'front' | 'desk'
  readonly outcome: Outcome
}

const CASES: readonly Case[] = [
  { root: 'agent', outcome: 'approved', payer: 'front', closesAt: 'front' },
  { root: 'agent', outcome: 'expired', payer: 'desk', closesAt: 'front' },
  { root: 'workflow', outcome: 'denied', payer: 'front', closesAt: 'front' },
  { root: 'workflow', outcome: 'approved', payer: 'desk', closesAt: 'desk' },
  { root: 'workflow', outcome: 'expired', payer: 'desk', closesAt: 'desk' },
  { root: 'workflow', outcome: 'approved', payer: 'desk', closesAt: 'front' },
]

test.for(CASES)(
  '[AP661] another server continues a turn: $root, paid by $payer, $outcome, closed while $closesAt replies',
  async ({ root, payer, closesAt, outcome }) => {
    const log: Log = []
    const replying = defer()
    const plans = play(log, {
      front: [payer === 'front' ? pay('A') : call('desk', { request: 'Pay.' })],
      desk: [pay('A')],
    })
    // The reply of one agent never arrives at the server that closes.
    let isClosing = false
    const respond: Responder = (prompt) => {
      const asked = log.filter((name) => name === closesAt).length
      const actions = plans(prompt)
      if (isClosing || asked !== 1 || log.at(-1) !== closesAt) return actions
      isClosing = true
      replying.resolve()
      return [{ type: 'wait', gate: 'never' }]
    }
    await using testBridge = await TestBridge.open({
      isLive: false,
      // Another server waits this long for the one that was to report the outcome.
      limits: { leaseMs: 500 },
      approvals: ({ toolName }) => ({
        required: toolName === 'process_payment',
        ...(outcome === 'expired' && { deadlineMs: 1 }),
      }),
      respond,
      agent: (model, tools) => {
        const desk = new AgentTool({ agent: agentOf(model, 'desk', tools) })
        const front = agentOf(model, 'front', payer === 'front' ? tools : [desk])
        const last = new FunctionNode('last', (_context, input) => {
          log.push('last')
          return `Last: ${String(input)}`
        })
        if (root === 'agent') return front
        return new Workflow({ name: 'flow', edges: [['START', front, last]] })
      },
    })
    const page = testBridge.page()
    await page.post(GO)
    if (outcome !== 'expired') {
      const [question] = await page.inbox()
      await page.decide(question?.id ?? '', { approved: outcome === 'approved' })
    }
    await replying.promise
    await testBridge.restart()
    const text = root === 'agent' ? 'front. ' : 'front. Last: front. '
    await page.untilMessages((messages) => textOf(messages.at(-1)) === text)
    expect(recipients(testBridge)).toEqual(outcome === 'approved' ? ['A'] : [])
    const paid = outcome === 'approved' ? 'output-available' : 'output-error'
    const state = outcome === 'denied' ? 'output-denied' : paid
    const parts = toolParts((await page.messages()).at(-1))
    expect(parts.map((part) => part.state)).toEqual(
      payer === 'front' ? [state] : ['output-available', state],
    )
    expect(log.filter((name) => name === 'last')).toHaveLength(root === 'agent' ? 0 : 1)
    expect((await page.messages()).at(-1)).not.toHaveProperty('metadata.stopped')
    expect(testBridge.errors).toEqual([])
  },
)

test('[AP661] a turn continues with its result, although an earlier message of its chat has ended after it', async () => {
  const replying = defer()
  let isClosing = false
  const respond: Responder = ({ contents }) => {
    const { text, functionResponse } = contents.at(-1)?.parts?.[0] ?? {}
    const recipient = String(functionResponse?.response?.['recipient'])
    if (text !== undefined) return [text.length === 1 ? pay(text) : say(text)]
    if (isClosing || recipient !== 'B') return [say(`Paid ${recipient}.`)]
    isClosing = true
    replying.resolve()
    return [{ type: 'wait', gate: 'never' }]
  }
  await using testBridge = await TestBridge.open({
    isLive: false,
    limits: { leaseMs: 500 },
    respond,
  })
  const page = testBridge.page()
  for (const text of ['A', 'B'])
    await page.post({
      id: 'chat-1',
      messages: [{ ...GO.messages[0], id: text, parts: [{ type: 'text', text }] }],
    })
  const asked = await page.inbox()
  const decide = (text: string): Promise<unknown> => {
    const approval = asked.find(({ args }) => JSON.stringify(args).includes(`"${text}"`))
    return page.decide(approval?.id ?? '', { approved: true })
  }
  await decide('B')
  await replying.promise
  await testBridge.restart()
  await decide('A')
  const texts = ['A', 'Paid A.', 'B', 'Paid B.']
  await page.untilMessages(
    (messages) => messages.filter((each) => textOf(each) !== '').length === 4,
  )
  expect((await page.messages()).map(textOf)).toEqual(texts)
  expect(recipients(testBridge)).toEqual(['B', 'A'])
})

test.for(['agent', 'workflow'])(
  '[AP1948] a turn that nobody has continued before the next message is shown as stopped: %s',
  async (root) => {
    const log: Log = []
    const replying = defer()
    const plans = play(log, { front: [pay('A')] })
    let isClosing = false
    const respond: Responder = (prompt) => {
      if (isClosing || log.length === 0) return plans(prompt)
      isClosing = true
      replying.resolve()
      return [{ type: 'wait', gate: 'never' }]
    }
    await using testBridge = await TestBridge.open({
      isLive: false,
      // Nobody continues the turn during the test.
      limits: { leaseMs: 600_000 },
      respond,
      agent: (model, tools) => {
        const front = agentOf(model, 'front', tools)
        return root === 'agent' ? front : new Workflow({ name: 'flow', edges: [['START', front]] })
      },
    })
    const page = testBridge.page()
    await page.post(GO)
    const [question] = await page.inbox()
    await page.decide(question?.id ?? '', { approved: true })
    await replying.promise
    await testBridge.restart()
    expect((await page.messages()).at(-1)).not.toHaveProperty('metadata.stopped')
    await page.post({ ...GO, messages: [{ ...GO.messages[0], id: 'm2' }] })
    const messages = await page.messages()
    expect(messages.map(textOf)).toEqual(['Go.', '', 'Go.', 'front. '])
    expect(messages[1]).toHaveProperty('metadata.stopped', true)
    expect(messages[3]).not.toHaveProperty('metadata.stopped')
    expect(recipients(testBridge)).toEqual(['A'])
    expect(testBridge.errors).toEqual([])
    // The mark is stored once.
    await page.post({ ...GO, messages: [{ ...GO.messages[0], id: 'm3' }] })
    const after = await page.messages()
    expect(after.slice(0, 4)).toEqual(messages)
  },
)

test('[AP1948] a turn whose agent has nothing to say to a result is not shown as stopped', async () => {
  const replies = [[pay('A')], [], [say('OK.')]]
  await using testBridge = await TestBridge.open({
    isLive: false,
    respond: () => replies.shift() ?? [],
  })
  const page = testBridge.page()
  await page.post(GO)
  const [question] = await page.inbox()
  await page.decide(question?.id ?? '', { approved: true })
  await page.untilMessages(() => replies.length === 1)
  await page.post({ ...GO, messages: [{ ...GO.messages[0], id: 'm2' }] })
  const messages = await page.messages()
  expect(messages.map(textOf)).toEqual(['Go.', '', 'Go.', 'OK.'])
  expect(messages[1]).not.toHaveProperty('metadata.stopped')
})

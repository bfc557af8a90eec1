import type { AppendEventRequest, BaseLlm, BaseTool, Event, NodeLike } from '@google/adk'
import {
  AgentTool,
  createEvent,
  DEFAULT_ROUTE,
  Edge,
  FunctionNode,
  InMemoryRunner,
  InMemorySessionService,
  JoinNode,
  LlmAgent,
  ParallelWorker,
  Workflow,
} from '@google/adk'
import type { Action, Prompt } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { longTest } from '../../../../test/support/long-test.ts'
import { takeTurns } from '../../../../test/support/take-turns.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { locationTool, TOKYO } from '../support/locating.ts'
import { approvingClients, clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import {
  agentOf,
  call,
  runThreeInARow,
  GO,
  type Log,
  pay,
  play,
  type Plans,
  recipients,
  say,
  THREE_IN_A_ROW,
} from './support/named-agents.ts'
import type { Page } from './support/page.ts'
import { TestBridge } from './support/test-bridge.ts'

const flow = (...nodes: [NodeLike, ...(NodeLike | readonly NodeLike[])[]]): Workflow =>
  new Workflow({ name: 'flow', edges: [['START', ...nodes]] })

/** Three agents, of which one pays. */
const chain =
  (payer: string) =>
  (model: BaseLlm, tools: BaseTool[]): Workflow => {
    const node = (name: string) => agentOf(model, name, name === payer ? tools : [])
    return flow(node('one'), node('two'), node('three'))
  }

const anyClient = firstClient()

function firstClient() {
  const [client] = approvingClients
  if (!client) throw new Error('a client')
  return client
}

/** Opens a bridge with a workflow, and a chat in which the workflow has started. */
async function start(
  log: Log,
  agent: (model: BaseLlm, tools: BaseTool[]) => Workflow,
  { plans = {}, ...options }: { plans?: Plans } & Parameters<typeof TestBridge.open>[0] = {},
) {
  const testBridge = await TestBridge.open({
    isLive: false,
    agent,
    respond: play(log, plans),
    ...options,
  })
  const page = testBridge.page()
  const chat = await page.open(anyClient, { autoSend: 'both' })
  await chat.send('Go.')
  return { testBridge, page, chat, [Symbol.asyncDispose]: () => testBridge[Symbol.asyncDispose]() }
}

const clients = clientsWith('7')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it.each(THREE_IN_A_ROW)(
    '[AP480] a workflow waits in node %s, approved %s, and continues with the next one',
    async (...given) => {
      expect(await runThreeInARow(client, chain(given[0]), given)).toEqual([])
    },
  )
})

/** A function that writes its name to the log. */
const fn = (log: Log, name: string, result: (input: unknown) => unknown = () => undefined) =>
  new FunctionNode(name, (_context, input) => {
    log.push(name)
    return result(input)
  })

test('[AP480] functions, routes and agents that have ended do not run again, with or without a result', async () => {
  const log: Log = []
  await using started = await start(
    log,
    (model, tools) => {
      const router = fn(log, 'router', () => createEvent({ route: 'big', output: 'Pay 5.' }))
      const payer = agentOf(model, 'payer', tools)
      const last = fn(log, 'last', (input) => `Last: ${String(input)}`)
      return new Workflow({
        name: 'flow',
        edges: [
          ['START', fn(log, 'silent'), agentOf(model, 'reader'), router],
          [router, { big: payer, small: agentOf(model, 'other') }],
          [payer, last],
        ],
      })
    },
    // A text before the call is not the result of the node.
    { plans: { payer: [[say('Let me see. '), pay('A')]] } },
  )
  const { testBridge, page, chat } = started
  expect(log).toEqual(['silent', 'reader', 'router', 'payer'])
  await chat.decide(true)
  expect(log.slice(4)).toEqual(['payer', 'last'])
  expect(recipients(testBridge)).toEqual(['A'])
  expect(textOf(chat.lastMessage)).toBe('reader. Let me see. payer. Last: payer. ')
  // The agent has read its own input, its call and the result, and nothing else.
  expect(testBridge.lastPrompt).toContain('Pay 5.')
  expect(testBridge.results).toHaveLength(1)
  await expectRecord(page, chat)
  expect(testBridge.errors).toEqual([])
})

test('[AP480] every node may ask, more than once, and the instruction of a later node reads all results', async () => {
  const log: Log = []
  await using started = await start(
    log,
    (model, tools) =>
      flow(
        agentOf(model, 'one', tools),
        agentOf(model, 'two', tools),
        new LlmAgent({ name: 'three', model, instruction: 'I am three after {one.output}' }),
      ),
    { plans: { one: [pay('A'), pay('B')], two: [pay('C')] } },
  )
  const { testBridge, page, chat } = started
  for (let paid = 0; paid < 3; paid += 1) {
    expect(testBridge.wallet.payments).toHaveLength(paid)
    await chat.decide(true)
  }
  expect(log).toEqual(['one', 'one', 'one', 'two', 'two', 'three'])
  expect(recipients(testBridge)).toEqual(['A', 'B', 'C'])
  await expectRecord(page, chat)
})

test('[AP480] calls of one node are decided apart: the next node starts when all are decided', async () => {
  const log: Log = []
  await using testBridge = await TestBridge.open({
    isLive: false,
    agent: chain('two'),
    respond: play(log, { two: [[pay('A'), pay('B')]] }),
  })
  const page = testBridge.page()
  await page.post(GO)
  const [first, second] = await page.inbox()
  await page.decide(String(first?.id), { approved: true })
  await page.untilState(String(first?.id), 'succeeded')
  await page.untilMessages((messages) => JSON.stringify(messages.at(-1)).includes('"balance"'))
  expect(log).toEqual(['one', 'two'])
  await page.decide(String(second?.id), { approved: false })
  await page.untilMessages((messages) => textOf(messages.at(-1)).includes('three'))
  expect(log).toEqual(['one', 'two', 'two', 'three'])
  expect(testBridge.wallet.payments).toHaveLength(1)
  expect(testBridge.errors).toEqual([])
})

test('[AP413] another server continues in the node that waits', async () => {
  const log: Log = []
  await using started = await start(log, chain('two'), { plans: { two: [pay('A')] } })
  const { testBridge, page } = started
  await testBridge.restart()
  const chat = await page.open(anyClient)
  await chat.decide(true)
  expect(log).toEqual(['one', 'two', 'two', 'three'])
  expect(recipients(testBridge)).toEqual(['A'])
  await expectRecord(page, chat)
})

test('[AP413] an approval that expires in a node ends its call, and the next node runs', async () => {
  const log: Log = []
  await using testBridge = await TestBridge.open({
    isLive: false,
    agent: chain('one'),
    approvalDeadlineMs: 50,
    respond: play(log, { one: [pay('A')] }),
  })
  const page = testBridge.page()
  await page.post(GO)
  await page.untilMessages((messages) => textOf(messages.at(-1)).includes('three'))
  expect(log).toEqual(['one', 'one', 'two', 'three'])
  expect(recipients(testBridge)).toEqual([])
})

test('[AP482] a new message starts the workflow again, and the waiting node continues in its own message', async () => {
  const log: Log = []
  await using started = await start(log, chain('two'), {
    whilePending: 'keep',
    plans: { two: [pay('A')] },
  })
  const { testBridge, page } = started
  const [asked] = await page.inbox()
  const parts = [{ type: 'text', text: 'Other.' }]
  await page.post({ id: 'chat-1', messages: [{ id: 'm2', role: 'user', parts }] })
  expect(log).toEqual(['one', 'two', 'one', 'two', 'three'])
  await page.decide(String(asked?.id), { approved: true })
  await page.untilMessages((messages) => textOf(messages[1]).includes('three'))
  expect(log.slice(5)).toEqual(['two', 'three'])
  expect(recipients(testBridge)).toEqual(['A'])
  expect(testBridge.errors).toEqual([])
})

test('[AP480] a node waits for an approval inside an agent that is used as a tool', async () => {
  const log: Log = []
  await using started = await start(
    log,
    (model, tools) =>
      flow(
        agentOf(model, 'one', [new AgentTool({ agent: agentOf(model, 'inner', tools) })]),
        agentOf(model, 'two'),
      ),
    { plans: { one: [call('inner', { request: 'Pay.' })], inner: [pay('A'), pay('B')] } },
  )
  const { testBridge, page, chat } = started
  expect(log).toEqual(['one', 'inner'])
  await chat.decide(true)
  expect(log).toEqual(['one', 'inner', 'inner'])
  await chat.decide(true)
  expect(log.slice(3)).toEqual(['inner', 'one', 'two'])
  expect(recipients(testBridge)).toEqual(['A', 'B'])
  await expectRecord(page, chat)
})

test('[AP480] a node waits for the result of a browser tool', async () => {
  const log: Log = []
  await using started = await start(
    log,
    (model) => flow(agentOf(model, 'one', [locationTool()]), agentOf(model, 'two')),
    { plans: { one: [call('get_location')] } },
  )
  const { page, chat } = started
  expect(log).toEqual(['one'])
  const [part] = toolParts(chat.lastMessage)
  await chat.give({ tool: 'get_location', toolCallId: part?.toolCallId ?? '', output: TOKYO })
  await chat.rest()
  expect(log).toEqual(['one', 'one', 'two'])
  await expectRecord(page, chat)
})

test('[AP480] the same workflow is not affected in a runner of the application', async () => {
  const log: Log = []
  let made: Workflow | undefined
  await using started = await start(log, (model, tools) => (made = chain('one')(model, tools)), {
    plans: { one: [pay('A')] },
  })
  expect(started.chat.asked).toHaveLength(1)
  if (!made) throw new Error('a workflow')
  const runner = new InMemoryRunner({ agent: made, appName: 'own' })
  const { id: sessionId } = await runner.sessionService.createSession({
    appName: 'own',
    userId: 'u',
  })
  const newMessage = { role: 'user', parts: [{ text: 'Go.' }] }
  log.length = 0
  for await (const event of runner.runAsync({ userId: 'u', sessionId, newMessage })) {
    expect(event.customMetadata).toBeUndefined()
  }
  expect(log).toEqual(['one', 'two', 'three'])
})

/** The progress in the newest message of a client. */
function shown({ lastMessage }: { lastMessage: ChatMessage | undefined }): unknown[] | undefined {
  return lastMessage?.parts.filter(({ type }) => type === 'data-steps').map(({ data }) => data)
}

const toSteps = (...states: readonly string[]) => [
  {
    agent: 'flow',
    kind: 'workflow',
    steps: ['one', 'two', 'three'].map((name, index) => ({ name, state: states[index] })),
    edges: [
      { from: 'one', to: 'two' },
      { from: 'two', to: 'three' },
    ],
  },
]

test('[MP410] the progress of a workflow is one part, which survives a pause and a restart', async () => {
  const log: Log = []
  await using started = await start(log, chain('two'), {
    plans: { two: [pay('A')] },
  })
  const { testBridge, page, chat: before } = started
  expect(shown(before)).toEqual(toSteps('done', 'waiting', 'pending'))
  await testBridge.restart()
  const chat = await page.open(anyClient)
  expect(shown(chat)).toEqual(toSteps('done', 'waiting', 'pending'))
  await chat.decide(true)
  expect(shown(chat)).toEqual(toSteps('done', 'done', 'done'))
  await expectRecord(page, chat)
})

/** Counts the stored events with the edges of a workflow. */
class CountingSessions extends InMemorySessionService {
  withEdges = 0

  override appendEvent(request: AppendEventRequest): Promise<Event> {
    if (JSON.stringify(request.event.customMetadata ?? {}).includes('"edges"')) this.withEdges += 1
    return super.appendEvent(request)
  }
}

test('[MP670] the edges of a workflow are stored once, and part of its progress, with routes and without the start', async () => {
  const sessionService = new CountingSessions()
  const router = new FunctionNode('router', () => createEvent({ route: 'small', output: 'Go.' }))
  await using started = await start(
    [],
    (model, tools) => {
      const small = agentOf(model, 'small', tools)
      const big = agentOf(model, 'big')
      return new Workflow({
        name: 'flow',
        edges: [
          ['START', router],
          [router, { small, [DEFAULT_ROUTE]: agentOf(model, 'other') }],
          new Edge(router, big, ['big', 2, 'x'.repeat(50)]),
          [small, big],
        ],
      })
    },
    { plans: { small: [pay('A')] }, sessionService },
  )
  const { page, chat } = started
  const edges = [
    { from: 'router', to: 'small', route: 'small' },
    { from: 'router', to: 'other' },
    { from: 'router', to: 'big', route: `big, 2, ${'x'.repeat(32)}` },
    { from: 'small', to: 'big' },
  ]
  expect(shown(chat)).toHaveProperty('0.edges', edges)
  await chat.decide(true)
  expect(shown(chat)).toHaveProperty('0.steps.3.state', 'done')
  expect(shown(chat)).toHaveProperty('0.edges', edges)
  expect(sessionService.withEdges).toBe(1)
  await expectRecord(page, chat)
})

/** A node that leads to many others. */
const fan = (count: number) => (): Workflow => {
  const others = Array.from({ length: count }, (_, index) => fn([], `node${index}`))
  return flow(fn([], 'first'), others)
}

longTest('[MP670] more than 64 edges are not sent', async () => {
  await using small = await start([], fan(64))
  await using large = await start([], fan(65))
  expect(shown(small.chat)).toHaveProperty('0.edges.length', 64)
  expect(shown(large.chat)).not.toHaveProperty('0.edges')
  expect(shown(large.chat)).toHaveProperty('0.steps.length', 66)
})

test('[AP480] parallel nodes wait apart, each continues once, and the node that joins them starts last', async () => {
  const log: Log = []
  await using started = await start(
    log,
    (model, tools) => {
      const join = new JoinNode({ name: 'join' })
      const branches = ['left', 'right'].map((name) => agentOf(model, name, tools))
      const free = agentOf(model, 'free')
      return new Workflow({
        name: 'flow',
        edges: [
          ...[...branches, free].map((node): [NodeLike, NodeLike, NodeLike] => [
            'START',
            node,
            join,
          ]),
          [join, agentOf(model, 'last')],
        ],
      })
    },
    { plans: { left: [pay('L')], right: [pay('R')] } },
  )
  const { testBridge, page } = started
  expect(log.toSorted()).toEqual(['free', 'left', 'right'])
  const asked = await page.inbox()
  const idOf = (recipient: string) =>
    String(asked.find((it) => JSON.stringify(it).includes(`"${recipient}"`))?.id)
  await page.decide(idOf('L'), { approved: true })
  await page.untilState(idOf('L'), 'succeeded')
  await page.untilMessages((messages) => JSON.stringify(messages.at(-1)).includes('"balance"'))
  expect(log).toHaveLength(3)
  await page.decide(idOf('R'), { approved: false })
  await page.untilMessages((messages) => textOf(messages.at(-1)).includes('last'))
  expect(log.slice(3).toSorted()).toEqual(['last', 'left', 'right'])
  expect(log.at(-1)).toBe('last')
  expect(recipients(testBridge)).toEqual(['L'])
  expect(testBridge.errors).toEqual([])
})

test('[AP480] a loop continues in the iteration in which its node waits', async () => {
  const log: Log = []
  let rounds = 0
  await using started = await start(
    log,
    (model, tools) => {
      const payer = agentOf(model, 'payer', tools)
      const check = fn(log, 'check', () => {
        rounds += 1
        return createEvent({ route: rounds < 3 ? 'again' : 'done', output: `Round ${rounds}.` })
      })
      return new Workflow({
        name: 'flow',
        edges: [
          ['START', payer, check],
          [check, { again: payer, done: agentOf(model, 'last') }],
        ],
      })
    },
    { plans: { payer: [say('First. '), pay('A'), say('a. '), pay('B'), say('b. ')] } },
  )
  const { testBridge, page, chat } = started
  expect(log).toEqual(['payer', 'check', 'payer'])
  await chat.decide(true)
  expect(log.slice(3)).toEqual(['payer', 'check', 'payer'])
  await chat.decide(true)
  expect(log.slice(6)).toEqual(['payer', 'check', 'last'])
  expect(recipients(testBridge)).toEqual(['A', 'B'])
  await expectRecord(page, chat)
})

test('[AP480] a node of a nested workflow waits, and both workflows continue', async () => {
  const log: Log = []
  await using started = await start(
    log,
    (model, tools) => {
      const inner = new Workflow({
        name: 'inner',
        edges: [['START', fn(log, 'begin'), agentOf(model, 'payer', tools), fn(log, 'end')]],
      })
      return flow(agentOf(model, 'one'), inner, agentOf(model, 'last', tools))
    },
    { plans: { payer: [pay('A')], last: [pay('B')] } },
  )
  const { testBridge, page, chat } = started
  expect(log).toEqual(['one', 'begin', 'payer'])
  await chat.decide(true)
  expect(log.slice(3)).toEqual(['payer', 'end', 'last'])
  await chat.decide(true)
  expect(log.slice(6)).toEqual(['last'])
  expect(recipients(testBridge)).toEqual(['A', 'B'])
  await expectRecord(page, chat)
})

test('[AP480] a client that sends by itself decides two parallel nodes at once', async () => {
  const log: Log = []
  await using started = await start(
    log,
    (model, tools) => {
      const join = new JoinNode({ name: 'join' })
      const left = agentOf(model, 'left', tools)
      const right = agentOf(model, 'right', tools)
      const last = agentOf(model, 'last')
      return new Workflow({
        name: 'flow',
        edges: [
          ['START', left, join, last],
          ['START', right, join],
        ],
      })
    },
    { plans: { left: [pay('L')], right: [pay('R')] } },
  )
  const { testBridge, page, chat } = started
  expect(chat.asked).toHaveLength(2)
  await chat.decide(true)
  expect(log.slice(2).toSorted()).toEqual(['last', 'left', 'right'])
  expect(recipients(testBridge).toSorted()).toEqual(['L', 'R'])
  await expectRecord(page, chat)
})

/** Makes a list, lets an agent pay for each item, and tells the results. */
const forEachItem =
  (log: Log, items: readonly string[], maxParallelWorkers: number) =>
  (model: BaseLlm, tools: BaseTool[]): Workflow => {
    const worker = new ParallelWorker(agentOf(model, 'payer', tools), { maxParallelWorkers })
    return flow(
      fn(log, 'list', () => createEvent({ output: items })),
      worker,
      fn(log, 'last', (input) => `Last: ${JSON.stringify(input)}`),
    )
  }

/** Pays for the item of the prompt, and then says its name. */
const payForItem =
  (log: Log) =>
  ({ contents }: Prompt): Action[] => {
    const [item = ''] = /item-[A-Z]/.exec(JSON.stringify(contents)) ?? []
    const isPaid = JSON.stringify(contents).includes('functionResponse')
    log.push(`${isPaid ? 'after' : 'before'} ${item}`)
    return [isPaid ? say(`${item} done. `) : pay(item)]
  }

/** Approves the payment for an item as soon as it is asked for. */
async function approveItem(page: Page, item: string): Promise<void> {
  const find = async () =>
    (await page.inbox()).find(({ args }) => JSON.stringify(args).includes(item))
  await expect.poll(find, { timeout: 120_000 }).toBeDefined()
  const { id = '' } = (await find()) ?? {}
  await page.decide(id, { approved: true })
  await page.untilState(id, 'succeeded')
}

/** Calls a function for the items, one after the other or at once. */
type Each = (items: readonly string[], use: (item: string) => Promise<void>) => Promise<void>

const inOrder: Each = async (items, use) => {
  for (const item of items) await use(item)
}
const backwards: Each = (items, use) => inOrder(items.toReversed(), use)
const atOnce: Each = async (items, use) => {
  await Promise.all(items.map(use))
}

test.each([
  ['in order', 8, inOrder],
  ['backwards', 8, backwards],
  ['at once', 8, atOnce],
  ['in order', 1, inOrder],
] as const)(
  '[AP614] an agent waits for the approval of each item of a ParallelWorker, decided %s, with %i workers',
  async (_name, workers, forEach) => {
    const log: Log = []
    const items = ['item-A', 'item-B', 'item-C']
    await using testBridge = await TestBridge.open({
      isLive: false,
      agent: forEachItem(log, items, workers),
      respond: payForItem(log),
    })
    const page = testBridge.page()
    await page.post(GO)
    expect(await page.inbox()).toHaveLength(Math.min(workers, 3))
    await forEach(items, (item) => approveItem(page, item))
    await page.untilMessages((messages) => textOf(messages.at(-1)).includes('Last'))
    expect(log.toSorted((one, two) => one.localeCompare(two))).toEqual([
      ...items.map((item) => `after ${item}`),
      ...items.map((item) => `before ${item}`),
      'last',
      'list',
    ])
    expect(log.at(-1)).toBe('last')
    expect(new Set(recipients(testBridge))).toEqual(new Set(items))
    expect(testBridge.wallet.payments).toHaveLength(3)
    const results = JSON.stringify(items.map((item) => `${item} done. `))
    expect(textOf((await page.messages()).at(-1))).toContain(`Last: ${results}`)
    expect(testBridge.errors).toEqual([])
  },
)

const FINISH = call('finish_task', { paid: 'yes' })

test.each([
  ['after its calls', [pay('A'), pay('B'), FINISH], ['A', 'B']],
  ['together with a call that waits', [[pay('A'), FINISH]], ['A']],
  ['together with a call that waits, and again', [[pay('A'), FINISH], FINISH], ['A']],
] as const)(
  '[AP615] an agent in task mode waits, finishes %s, and the next node reads its result',
  async (_name, actions, paid) => {
    const log: Log = []
    const plan = actions.map((action) => [action].flat())
    await using started = await start(
      log,
      (model, tools) =>
        flow(
          agentOf(model, 'one'),
          new LlmAgent({
            name: 'two',
            model,
            mode: 'task',
            instruction: 'I am two.',
            tools,
            outputSchema: z.object({ paid: z.string() }),
          }),
          fn(log, 'last', (input) => `Last: ${JSON.stringify(input)}`),
        ),
      { plans: { two: plan } },
    )
    const { testBridge, page, chat } = started
    for (const recipient of paid) {
      expect(recipients(testBridge)).not.toContain(recipient)
      expect(log).not.toContain('last')
      await chat.decide(true)
    }
    expect(recipients(testBridge)).toEqual(paid)
    expect(log.filter((name) => name !== 'two')).toEqual(['one', 'last'])
    expect(textOf(chat.lastMessage)).toContain('Last: {"paid":"yes"}')
    await expectRecord(page, chat)
    expect(testBridge.errors).toEqual([])
  },
)

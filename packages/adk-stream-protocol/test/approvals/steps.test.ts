// oxlint-disable typescript/no-deprecated -- These agents are deprecated in favour of Workflow, and in use.
import type { BaseAgent } from '@google/adk'
import {
  AgentTool,
  EXIT_LOOP,
  InMemoryRunner,
  LlmAgent,
  LoopAgent,
  ParallelAgent,
  SequentialAgent,
} from '@google/adk'
import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { weather } from '../support/agents.ts'
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
  type MakeAgent,
  pay,
  play,
  recipients,
  say,
  THREE_IN_A_ROW,
} from './support/named-agents.ts'
import { TestBridge } from './support/test-bridge.ts'

/** Three steps, of which one pays. */
const sequence =
  (payer: string): MakeAgent<BaseAgent> =>
  (model, tools) =>
    new SequentialAgent({
      name: 'steps',
      subAgents: ['one', 'two', 'three'].map((name) =>
        agentOf(model, name, name === payer ? tools : []),
      ),
    })

const WEATHER_TWICE = ['Tokyo', 'Osaka'].map((place) => call('get_weather', { place }))

const clients = clientsWith('7')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it.each(THREE_IN_A_ROW)(
    '[AP410] a sequence waits in step %s, approved %s, and continues with the next one',
    async (...given) => {
      expect(await runThreeInARow(client, sequence(given[0]), given)).toEqual([])
    },
  )

  it('[AP410] every step may ask, one after the other, more than once', async () => {
    const log: Log = []
    await using testBridge = await TestBridge.open({
      isLive: false,
      agent: (model, tools) =>
        new SequentialAgent({
          name: 'steps',
          subAgents: ['one', 'two'].map((name) => agentOf(model, name, tools)),
        }),
      respond: play(log, { one: [pay('A'), pay('B')], two: [pay('C')] }),
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    for (let paid = 0; paid < 3; paid += 1) {
      expect(testBridge.wallet.payments).toHaveLength(paid)
      await chat.decide(true)
    }
    expect(log).toEqual(['one', 'one', 'one', 'two', 'two'])
    expect(recipients(testBridge)).toEqual(['A', 'B', 'C'])
    await expectRecord(page, chat)
  })

  it('[AP411] a loop keeps its iteration while a call waits', async () => {
    const log: Log = []
    await using testBridge = await TestBridge.open({
      isLive: false,
      agent: (model, tools) =>
        new LoopAgent({
          name: 'loop',
          maxIterations: 3,
          subAgents: [agentOf(model, 'one'), agentOf(model, 'two', tools)],
        }),
      respond: play(log, { two: [say('First. '), pay('A')] }),
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    expect(log).toEqual(['one', 'two', 'one', 'two'])
    await chat.decide(true)
    expect(log).toEqual(['one', 'two', 'one', 'two', 'two', 'one', 'two'])
    expect(recipients(testBridge)).toEqual(['A'])
    await expectRecord(page, chat)
  })

  it('[AP411] a loop of one agent that pays in each iteration, until it exits', async () => {
    const log: Log = []
    await using testBridge = await TestBridge.open({
      isLive: false,
      agent: (model, tools) =>
        new LoopAgent({
          name: 'loop',
          subAgents: [agentOf(model, 'one', [...tools, EXIT_LOOP])],
        }),
      respond: play(log, {
        one: [pay('A'), say('a. '), pay('B'), say('b. '), call('exit_loop')],
      }),
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    await chat.decide(true)
    expect(recipients(testBridge)).toEqual(['A'])
    await chat.decide(true)
    expect(recipients(testBridge)).toEqual(['A', 'B'])
    expect(log).toHaveLength(5)
    expect(chat.asked).toEqual([])
    await expectRecord(page, chat)
  })

  it('[AP412] the next step starts when all branches of a parallel agent have ended', async () => {
    const log: Log = []
    await using testBridge = await TestBridge.open({
      isLive: false,
      agent: (model, tools) =>
        new SequentialAgent({
          name: 'steps',
          subAgents: [
            new ParallelAgent({
              name: 'both',
              subAgents: ['left', 'right', 'free'].map((name) => agentOf(model, name, tools)),
            }),
            agentOf(model, 'last'),
          ],
        }),
      respond: play(log, { left: [pay('L')], right: [pay('R')] }),
    })
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send('Go.')
    expect(log.toSorted()).toEqual(['free', 'left', 'right'])
    expect(chat.asked).toHaveLength(2)
    await chat.decide(true)
    expect(log.slice(3).toSorted()).toEqual(['last', 'left', 'right'])
    expect(log.at(-1)).toBe('last')
    expect(recipients(testBridge).toSorted()).toEqual(['L', 'R'])
    await expectRecord(page, chat)
  })

  it('[AP412] a client that sends by itself sends the decision after another branch has continued', async () => {
    const log: Log = []
    await using testBridge = await TestBridge.open({
      isLive: false,
      agent: (model, tools) =>
        new ParallelAgent({
          name: 'both',
          subAgents: [agentOf(model, 'left', tools), agentOf(model, 'free', [weather])],
        }),
      respond: play(log, { left: [pay('L')], free: WEATHER_TWICE }),
    })
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send('Go.')
    expect(log.toSorted()).toEqual(['free', 'free', 'free', 'left'])
    await chat.decide(true)
    expect(log.at(-1)).toBe('left')
    expect(recipients(testBridge)).toEqual(['L'])
    expect(toolParts(chat.lastMessage).every(({ state }) => state === 'output-available')).toBe(
      true,
    )
    await expectRecord(page, chat)
  })
})

test('[AP412] branches are decided apart: each continues once, when all have a decision', async () => {
  const log: Log = []
  await using testBridge = await TestBridge.open({
    isLive: false,
    agent: (model, tools) =>
      new SequentialAgent({
        name: 'steps',
        subAgents: [
          new ParallelAgent({
            name: 'both',
            subAgents: [
              agentOf(model, 'left', tools),
              new SequentialAgent({
                name: 'inner',
                subAgents: [agentOf(model, 'right', tools), agentOf(model, 'after', [weather])],
              }),
            ],
          }),
          agentOf(model, 'last'),
        ],
      }),
    respond: play(log, {
      left: [pay('L')],
      right: [pay('R')],
      after: [call('get_weather', { place: 'Tokyo' })],
    }),
  })
  const page = testBridge.page()
  await page.post(GO)
  const asked = await page.inbox()
  const idOf = (recipient: string) =>
    String(asked.find((it) => JSON.stringify(it).includes(`"${recipient}"`))?.id)
  await page.decide(idOf('L'), { approved: true })
  await page.untilState(idOf('L'), 'succeeded')
  await page.untilMessages((messages) => JSON.stringify(messages.at(-1)).includes('"balance"'))
  expect(log.toSorted()).toEqual(['left', 'right'])
  await page.decide(idOf('R'), { approved: false })
  await page.untilMessages((messages) => textOf(messages.at(-1)).includes('last'))
  expect(log.slice(2).toSorted()).toEqual(['after', 'after', 'last', 'left', 'right'])
  expect(log.at(-1)).toBe('last')
  expect(recipients(testBridge)).toEqual(['L'])
  expect(testBridge.errors).toEqual([])
})

/** The progress of steps in the newest message of a client. */
function shown({ lastMessage }: { lastMessage: ChatMessage | undefined }): unknown[] | undefined {
  return lastMessage?.parts.filter(({ type }) => type === 'data-steps').map(({ data }) => data)
}

const toSteps = (...states: readonly string[]) => [
  {
    agent: 'steps',
    kind: 'sequence',
    steps: ['one', 'two', 'three'].map((name, index) => ({ name, state: states[index] })),
  },
]

test('[MP410] the progress of steps is one part, which survives a pause and a restart', async () => {
  const log: Log = []
  await using testBridge = await TestBridge.open({
    isLive: false,
    agent: sequence('two'),
    respond: play(log, { two: [pay('A')] }),
  })
  const page = testBridge.page()
  const [client] = approvingClients
  if (!client) throw new Error('a client')
  const before = await page.open(client)
  await before.send('Go.')
  expect(shown(before)).toEqual(toSteps('done', 'waiting', 'pending'))
  await testBridge.restart()
  const chat = await page.open(client)
  expect(shown(chat)).toEqual(toSteps('done', 'waiting', 'pending'))
  await chat.decide(true)
  expect(shown(chat)).toEqual(toSteps('done', 'done', 'done'))
  await expectRecord(page, chat)
})

test('[AP413] an approval that expires in a step ends its call, and the next step runs', async () => {
  const log: Log = []
  await using testBridge = await TestBridge.open({
    isLive: false,
    agent: sequence('one'),
    approvalDeadlineMs: 50,
    respond: play(log, { one: [pay('A')] }),
  })
  const page = testBridge.page()
  await page.post(GO)
  await page.untilMessages((messages) => textOf(messages.at(-1)).includes('three'))
  expect(log).toEqual(['one', 'one', 'two', 'three'])
  expect(recipients(testBridge)).toEqual([])
  expect(toolParts((await page.messages()).at(-1))).toMatchObject([{ state: 'output-error' }])
})

test('[AP413] a loop inside a sequence keeps its place over a restart of the server', async () => {
  const log: Log = []
  await using testBridge = await TestBridge.open({
    isLive: false,
    agent: (model, tools) =>
      new SequentialAgent({
        name: 'steps',
        subAgents: [
          agentOf(model, 'first'),
          new LoopAgent({
            name: 'loop',
            maxIterations: 2,
            subAgents: [agentOf(model, 'one'), agentOf(model, 'two', tools)],
          }),
          agentOf(model, 'last'),
        ],
      }),
    respond: play(log, { two: [say('Not yet. '), pay('A')] }),
  })
  const page = testBridge.page()
  const [client] = approvingClients
  if (!client) throw new Error('a client')
  await page.post(GO)
  expect(log).toEqual(['first', 'one', 'two', 'one', 'two'])
  await testBridge.restart()
  const chat = await page.open(client)
  await chat.decide(true)
  expect(log.slice(5)).toEqual(['two', 'last'])
  expect(recipients(testBridge)).toEqual(['A'])
  await expectRecord(page, chat)
})

test('[AP410] an agent that is transferred to waits in its steps, and callbacks run once', async () => {
  const log: Log = []
  const note = (text: string) => () => {
    log.push(text)
    return undefined
  }
  await using testBridge = await TestBridge.open({
    isLive: false,
    agent: (model, tools) => {
      const inner = agentOf(model, 'inner', tools)
      const one = new LlmAgent({
        name: 'one',
        model,
        instruction: 'I am one.',
        description: 'One.',
        subAgents: [inner],
      })
      const steps = new SequentialAgent({
        name: 'steps',
        description: 'The steps.',
        subAgents: [one, agentOf(model, 'two')],
        beforeAgentCallback: note('before'),
        afterAgentCallback: note('after'),
      })
      return new LlmAgent({ name: 'root', model, instruction: 'I am root.', subAgents: [steps] })
    },
    respond: play(log, {
      root: [call('transfer_to_agent', { agentName: 'steps' })],
      one: [call('transfer_to_agent', { agentName: 'inner' })],
      inner: [pay('A')],
    }),
  })
  const page = testBridge.page()
  const [client] = approvingClients
  if (!client) throw new Error('a client')
  const chat = await page.open(client)
  await chat.send('Go.')
  expect(log).toEqual(['root', 'before', 'one', 'inner'])
  await chat.decide(true)
  expect(log.slice(4)).toEqual(['inner', 'two', 'after'])
  expect(recipients(testBridge)).toEqual(['A'])
  await expectRecord(page, chat)
})

test('[AP410] a step waits for an approval inside an agent that is used as a tool', async () => {
  const log: Log = []
  await using testBridge = await TestBridge.open({
    isLive: false,
    agent: (model, tools) =>
      new LoopAgent({
        name: 'loop',
        maxIterations: 1,
        subAgents: [
          agentOf(model, 'one', [new AgentTool({ agent: agentOf(model, 'inner', tools) })]),
          agentOf(model, 'two'),
        ],
      }),
    respond: play(log, { one: [call('inner', { request: 'Pay.' })], inner: [pay('A')] }),
  })
  const page = testBridge.page()
  const [client] = approvingClients
  if (!client) throw new Error('a client')
  const chat = await page.open(client, { autoSend: 'both' })
  await chat.send('Go.')
  expect(log).toEqual(['one', 'inner'])
  await chat.decide(true)
  expect(log).toEqual(['one', 'inner', 'inner', 'one', 'two'])
  expect(recipients(testBridge)).toEqual(['A'])
  await expectRecord(page, chat)
})

test('[AP410] a step waits for the result of a browser tool', async () => {
  const log: Log = []
  await using testBridge = await TestBridge.open({
    isLive: false,
    agent: (model) =>
      new SequentialAgent({
        name: 'steps',
        subAgents: [agentOf(model, 'one', [locationTool()]), agentOf(model, 'two')],
      }),
    respond: play(log, { one: [call('get_location')] }),
  })
  const page = testBridge.page()
  const [client] = approvingClients
  if (!client) throw new Error('a client')
  const chat = await page.open(client, { autoSend: 'both' })
  await chat.send('Go.')
  expect(log).toEqual(['one'])
  const [part] = toolParts(chat.lastMessage)
  await chat.give({ tool: 'get_location', toolCallId: part?.toolCallId ?? '', output: TOKYO })
  await chat.rest()
  expect(log).toEqual(['one', 'one', 'two'])
  await expectRecord(page, chat)
})

test('[AP410] the same agent is not affected in a runner of the application', async () => {
  const log: Log = []
  let steps: BaseAgent | undefined
  await using testBridge = await TestBridge.open({
    isLive: false,
    agent: (model, tools) => (steps = sequence('one')(model, tools)),
    respond: play(log, { one: [pay('A')] }),
  })
  await testBridge.page().post(GO)
  if (!steps) throw new Error('an agent')
  const runner = new InMemoryRunner({ agent: steps, appName: 'own' })
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

test.each([
  ['a call that needs no approval', call('get_weather', { place: 'Tokyo' }), 3],
  ['exit_loop', call('exit_loop'), 2],
])(
  '[AP7] after an approved call, the model makes %s, and is called as often as needed',
  async (_name, next, calls) => {
    const log: Log = []
    await using testBridge = await TestBridge.open({
      isLive: false,
      agent: (model, tools) => agentOf(model, 'one', [...tools, weather, EXIT_LOOP]),
      respond: play(log, { one: [pay('A'), next] }),
    })
    const page = testBridge.page()
    const [client] = approvingClients
    if (!client) throw new Error('a client')
    const chat = await page.open(client)
    await chat.send('Go.')
    await chat.decide(true)
    expect(log).toHaveLength(calls)
    expect(textOf(chat.lastMessage)).toBe(calls === 3 ? 'one. ' : '')
    await expectRecord(page, chat)
  },
)

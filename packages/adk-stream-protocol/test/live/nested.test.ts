import { describe, expect, test } from 'vitest'

import { nest } from '../approvals/support/nested-agents.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import { toolParts } from '../support/chat-probe.ts'
import {
  asked,
  faultsOf,
  joinLive,
  lastSession,
  type LiveTestBridgeOptions,
  openLiveTestBridge,
  unasked,
  untilAsked,
  whole,
} from './support/live-test-bridge.ts'

const BLOCKING_MODEL = 'gemini-3.1-flash-live-preview'

/** The script of a model that asks an agent, which follows the script of its request. */
function callAgent(request: string, name = 'travel'): string {
  return `[[call ${name} ${JSON.stringify({ request })}]]`
}

const BOOK = `${callPayment(50)}[[then]][[say Booked.]]`
const BOOK_TWO = `${callPayment(50)} ${callPayment(30, '太郎')}[[then]][[say Booked both.]]`

/** A live model whose agent `travel` can pay. */
function openNested(options: LiveTestBridgeOptions = {}, names?: string[]): Promise<TestBridge> {
  return openLiveTestBridge({
    agent: (model, tools) => nest(model, tools, { outer: tools, ...(names && { names }) }),
    ...options,
  })
}

function decide(client: SocketClient, approvalId: string, approved = true): void {
  client.send({ type: 'decide', decisionId: `d-${approvalId}`, id: 'chat-1', approvalId, approved })
}

/** What the live model received as results, oldest first. */
function resultsOf(testBridge: TestBridge): unknown[] {
  return testBridge.emulator.live.sessions.flatMap(({ received }) =>
    received.flatMap((frame) => {
      const { functionResponses = [] } = (frame['toolResponse'] ?? {}) as {
        functionResponses?: { response: unknown; willContinue?: boolean }[]
      }
      return functionResponses.flatMap(({ response, willContinue }) =>
        willContinue === true ? [] : [response],
      )
    }),
  )
}

/** The call of an agent has the output `pending` until the agent has finished (AP400). */
function withoutSecondResult(faults: readonly string[]): string[] {
  return faults.filter((fault) => fault !== 'tool-output-available of a call that is settled')
}

async function untilSaid(testBridge: TestBridge, text: string): Promise<void> {
  await testBridge.page().untilMessages((messages) => JSON.stringify(messages).includes(text))
}

describe.each([
  ['a model that goes on talking', FREE_MODEL],
  ['a model that waits', BLOCKING_MODEL],
])('%s', (_, liveModel) => {
  test.each([false, true])(
    '[LV490] calls inside an agent wait together, run once, and the agent’s reply is the result (hold: %s)',
    async (hold) => {
      await using testBridge = await openNested({ liveModel })
      await using client = await joinLive(testBridge)
      client.send({ type: 'watch', id: 'chat-1' })
      const text = `${callAgent(BOOK_TWO)} [[then]] [[say All done.]]`
      const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text }] }
      const id = 'chat-1'
      client.send({ type: 'send', requestId: 'r1', id, messages: [message], body: { hold } })
      const [first = '', second = ''] = await untilAsked(client, 2)
      const page = testBridge.page()
      expect(await page.inbox()).toMatchObject([
        { toolName: 'process_payment', path: ['planner', 'travel'] },
        { toolName: 'process_payment', path: ['planner', 'travel'] },
      ])
      expect(resultsOf(testBridge)).toEqual([])
      decide(client, second)
      await page.untilState(second, 'succeeded')
      expect(testBridge.wallet.payments).toEqual([{ amount: 30, recipient: '太郎' }])
      expect(await page.decide(first, { approved: false })).toMatchObject({ status: 200 })
      await untilSaid(testBridge, 'All done.')
      expect(testBridge.wallet.payments).toHaveLength(1)
      expect(resultsOf(testBridge)).toEqual([{ result: 'Booked both.' }])
      const messages = await page.messages()
      expect(messages).toHaveLength(2)
      expect(toolParts(messages[1])).toMatchObject([
        { type: 'tool-travel', state: 'output-available', output: { result: 'Booked both.' } },
        { type: 'tool-process_payment', state: 'output-denied' },
        { type: 'tool-process_payment', state: 'output-available' },
      ])
      for (const request of unasked(client))
        expect(withoutSecondResult(await faultsOf(client, request))).toEqual([])
      expect(testBridge.errors).toEqual([])
    },
  )

  test('[LV490] a call inside an agent waits while the page and Gemini reconnect', async () => {
    await using testBridge = await openNested({ liveModel }, ['planner', 'agency', 'travel'])
    const first = await joinLive(testBridge)
    first.say(`${callAgent(callAgent(BOOK), 'agency')} [[then]] [[say All done.]]`)
    const [id = ''] = await untilAsked(first)
    await first[Symbol.asyncDispose]()
    const { length } = testBridge.emulator.live.sessions
    lastSession(testBridge).drop()
    await expect.poll(() => testBridge.emulator.live.sessions.length).toBeGreaterThan(length)
    await using second = await joinLive(testBridge)
    second.send({ type: 'watch', id: 'chat-1' })
    decide(second, id)
    await untilSaid(testBridge, 'All done.')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(await testBridge.page().history(id)).toEqual([
      'requested',
      'approved',
      'started',
      'succeeded',
    ])
  })
})

test('[LV490] a call inside has the deadline of the live session, and the agent learns that it expired', async () => {
  await using testBridge = await openNested({ live: { approvalDeadlineMs: 60 } })
  await using client = await joinLive(testBridge)
  client.say(`${callAgent(`${callPayment(50)}[[then]][[say Too late.]]`)} [[then]] [[say Pity.]]`)
  const [id = ''] = await untilAsked(client)
  await testBridge.page().untilState(id, 'expired')
  await untilSaid(testBridge, 'Pity.')
  expect(resultsOf(testBridge)).toEqual([{ result: 'Too late.' }])
  expect(testBridge.wallet.payments).toEqual([])
})

test('[LV490] an agent asks again in a later step, while other calls wait, as the reloaded page shows', async () => {
  await using testBridge = await openNested({ liveModel: FREE_MODEL })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  const twice = `${callPayment(1, 'one')}[[then]]${callPayment(2, 'two')}[[then]][[say Twice.]]`
  client.say(`${callAgent(twice)} ${callPayment(3, 'outer')} [[then]] [[say All done.]]`)
  await untilAsked(client, 2)
  const page = testBridge.page()
  const recipients = async () =>
    (await page.inbox()).map(({ args }) => (args as { recipient: string }).recipient).toSorted()
  const decideOn = async (recipient: string) => {
    const inbox = await page.inbox()
    const found = inbox.find(({ args }) => (args as { recipient: string }).recipient === recipient)
    return page.decide(String(found?.id), { approved: true })
  }
  expect(await recipients()).toEqual(['one', 'outer'])
  await decideOn('one')
  await expect.poll(recipients).toEqual(['outer', 'two'])
  await decideOn('two')
  await expect.poll(() => resultsOf(testBridge)).toEqual([{ result: 'Twice.' }])
  await decideOn('outer')
  await untilSaid(testBridge, 'All done.')
  expect(testBridge.wallet.payments.map(({ recipient }) => recipient)).toEqual([
    'one',
    'two',
    'outer',
  ])
  expect(testBridge.errors).toEqual([])
})

test('[LV490] a decision after the live session and its server have ended runs the call inside once', async () => {
  await using testBridge = await openNested()
  const client = await joinLive(testBridge)
  client.say(`${callAgent(BOOK)} [[then]] [[say All done.]]`)
  const [id = ''] = await untilAsked(client)
  await client[Symbol.asyncDispose]()
  await testBridge.restart()
  expect(await testBridge.page().decide(id, { approved: true })).toMatchObject({ status: 200 })
  await testBridge.page().untilState(id, 'succeeded')
  await testBridge
    .page()
    .untilMessages((messages) =>
      toolParts(messages.at(-1)).every((part) => part.state === 'output-available'),
    )
  const [agent] = toolParts((await testBridge.page().messages())[1])
  expect(agent).toMatchObject({ type: 'tool-travel', output: { result: 'Booked.' } })
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[LV492] a call of an agent that the model cancels ends, and its approvals are cancelled', async () => {
  await using testBridge = await openNested({ liveModel: BLOCKING_MODEL })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1' })
  client.say(`${callAgent(BOOK_TWO)} [[wait seen]] [[cancel]]`)
  const [id = ''] = await untilAsked(client, 2)
  testBridge.emulator.release('seen')
  const page = testBridge.page()
  for (const approvalId of asked(client)) await page.untilState(approvalId, 'cancelled')
  await page.untilMessages((messages) =>
    toolParts(messages[1]).every((part) => part.state === 'output-error'),
  )
  expect(toolParts((await page.messages())[1])).toHaveLength(3)
  const approvals = (await page.messages())[1]?.parts.filter(({ type }) => type === 'data-approval')
  expect(approvals?.map(({ data }) => (data as { state: string }).state)).toEqual([
    'cancelled',
    'cancelled',
  ])
  expect(await page.decide(id, { approved: true })).toMatchObject({ status: 410 })
  expect(testBridge.wallet.payments).toEqual([])
  client.say('[[say And on.]]', 'r9')
  expect(await whole(client, 'r9')).toBe('And on.')
})

import { describe, expect } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { shareOf } from '../../../../test/support/long-run.ts'
import { weather } from '../support/agents.ts'
import { partTypes, toolParts } from '../support/chat-probe.ts'
import { clientsWith } from './support/approving-chat.ts'
import { expectRecord, expectValid } from './support/expect-record.ts'
import { TestBridge } from './support/test-bridge.ts'
import { callPayment, paymentTool } from './support/payments.ts'

const BOTH = `${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Done.]]`
const STATES = { true: 'output-available', false: 'output-denied' } as const
const HISTORIES = {
  true: ['requested', 'approved', 'started', 'succeeded'],
  false: ['requested', 'denied'],
} as const
const COMBINATIONS = [
  [true, true],
  [true, false],
  [false, true],
  [false, false],
] as const
const CASES = COMBINATIONS.flatMap(([alice, bob]) =>
  (['Alice first', 'Bob first'] as const).map((order) => ({ alice, bob, order })),
)

function paid(alice: boolean, bob: boolean): string[] {
  return [...(alice ? ['Alice'] : []), ...(bob ? ['Bob'] : [])]
}

const clients = clientsWith('7')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })
  const cases = shareOf(CASES, { group: clients.indexOf(client), groups: clients.length })

  it.each(cases)(
    '[AP7] two at once, Alice $alice, Bob $bob, $order, decided together',
    async ({ alice, bob, order }) => {
      await using testBridge = await TestBridge.open()
      const page = testBridge.page()
      const chat = await page.open(client, { autoSend: 'both' })
      await chat.send(BOTH)
      const [first = '', second = ''] = chat.asked
      const clicks = [
        { id: first, approved: alice },
        { id: second, approved: bob },
      ]
      const sentBefore: number[] = []
      for (const click of order === 'Alice first' ? clicks : clicks.toReversed()) {
        sentBefore.push(page.sent.length)
        await chat.click(click)
      }
      await chat.rest()
      expect(sentBefore).toEqual(client.ours ? [1, 2] : [1, 1])
      expect(toolParts(chat.lastMessage)).toMatchObject([
        { input: { recipient: 'Alice' }, state: STATES[`${alice}`] },
        { input: { recipient: 'Bob' }, state: STATES[`${bob}`] },
      ])
      expect(chat.text).toBe('Done.')
      const inOrder = client.ours && order === 'Bob first' ? 'toReversed' : 'slice'
      expect(testBridge.wallet.payments.map(({ recipient }) => recipient)).toEqual(
        paid(alice, bob)[inOrder](),
      )
      expect(testBridge.wallet.balance).toBe(1_000 - (alice ? 30 : 0) - (bob ? 40 : 0))
      expect(await page.history(first)).toEqual(HISTORIES[`${alice}`])
      expect(await page.history(second)).toEqual(HISTORIES[`${bob}`])
      // The client library sends each decision at once.
      expect(page.sent).toHaveLength(client.ours ? 3 : 2)
      expect(testBridge.asked).toBe(2)
      await expectRecord(page, chat)
    },
  )

  it.each(cases)(
    '[AP8] two at once, Alice $alice, Bob $bob, $order, decided separately',
    async ({ alice, bob, order }) => {
      await using testBridge = await TestBridge.open()
      const page = testBridge.page()
      const chat = await page.open(client)
      await chat.send(BOTH)
      const [idOfAlice = '', idOfBob = ''] = chat.asked
      const answers = [
        { id: idOfAlice, approved: alice, name: 'Alice', index: 0 },
        { id: idOfBob, approved: bob, name: 'Bob', index: 1 },
      ]
      const [now, later] = order === 'Alice first' ? answers : answers.toReversed()
      if (!now || !later) throw new Error('two answers')
      expect(await page.decide(now.id, { approved: now.approved })).toMatchObject({ status: 200 })
      const stateOf = (name: string) => (messages: Awaited<ReturnType<typeof page.messages>>) =>
        toolParts(messages.at(-1)).find(
          ({ input }) => (input as { recipient: string }).recipient === name,
        )?.state
      await page.untilMessages(
        (messages) => stateOf(now.name)(messages) === STATES[`${now.approved}`],
      )
      expect(stateOf(later.name)(await page.messages())).toBe('approval-requested')
      expect(testBridge.wallet.payments.map(({ recipient }) => recipient)).toEqual(
        now.approved ? [now.name] : [],
      )
      // The model has not been called: it replies when both decisions have arrived.
      expect(testBridge.asked).toBe(1)
      await expectValid(await page.messages())
      await page.decide(later.id, { approved: later.approved })
      await page.untilMessages((messages) => partTypes(messages.at(-1)).at(-1) === 'text')
      expect(testBridge.asked).toBe(2)
      expect(testBridge.wallet.balance).toBe(1_000 - (alice ? 30 : 0) - (bob ? 40 : 0))
      expect(await page.history(idOfAlice)).toEqual(HISTORIES[`${alice}`])
      expect(await page.history(idOfBob)).toEqual(HISTORIES[`${bob}`])
      const reloaded = await page.open(client)
      expect(reloaded.text).toBe('Done.')
      expect(toolParts(reloaded.lastMessage)).toMatchObject([
        { state: STATES[`${alice}`] },
        { state: STATES[`${bob}`] },
      ])
      expect(page.sent).toHaveLength(1)
      await expectRecord(page, reloaded)
    },
  )

  it('[AP8] one is decided in an inbox, the other on the page that shows both', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send(BOTH)
    const [alice = '', bob = ''] = chat.asked
    await page.decide(bob, { approved: true })
    await page.untilState(bob, 'succeeded')
    await chat.decide(true)
    expect(testBridge.wallet.payments.map(({ recipient }) => recipient)).toEqual(['Bob', 'Alice'])
    expect(toolParts(chat.lastMessage).map(({ state }) => state)).toEqual([
      'output-available',
      'output-available',
    ])
    expect(await page.history(alice)).toEqual(HISTORIES.true)
    expect(page.sent).toHaveLength(client.ours ? 3 : 2)
    expect(testBridge.asked).toBe(2)
    await expectRecord(page, chat)
  })

  it('[AP9] the result of a parallel call that needs no approval is stored, shown and passed to the model', async () => {
    await using testBridge = await TestBridge.open({
      tools: (wallet) => [paymentTool(wallet), weather],
    })
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    const look = '[[call get_weather {"place":"東京"}]]'
    await chat.send(`${look}${callPayment(50)}${look}[[then]][[say Sunny and paid.]]`)
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-available', output: { celsius: 18 } },
      { state: 'approval-requested' },
      { state: 'output-available', output: { celsius: 18 } },
    ])
    expect(page.sent).toHaveLength(1)
    await expectRecord(page, chat)
    await chat.decide(true)
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { output: { celsius: 18 } },
      { output: { balance: 950 } },
      { output: { celsius: 18 } },
    ])
    expect(testBridge.results).toMatchObject([{ celsius: 18 }, { balance: 950 }, { celsius: 18 }])
    expect(chat.text).toBe('Sunny and paid.')
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
  })

  it.each([
    ['without a word in between', ''],
    ['with text in between', '[[say Next.]]'],
  ])('[AP7] one approval after the other %s, in one message', async (_case, between) => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    const script = [callPayment(10, 'A'), callPayment(20, 'B'), callPayment(30, 'C')]
    await chat.send(`${script.join(`[[then]]${between}`)}[[then]][[say Done.]]`)
    const ids: string[] = []
    for (const approved of [true, false, true]) {
      ids.push(...chat.asked)
      expect(chat.asked).toHaveLength(1)
      await chat.decide(approved)
      await expectRecord(page, chat)
    }
    expect(toolParts(chat.lastMessage).map(({ state }) => state)).toEqual([
      'output-available',
      'output-denied',
      'output-available',
    ])
    expect(chat.messages).toHaveLength(2)
    expect(chat.text).toBe(`${between === '' ? '' : 'Next.Next.'}Done.`)
    expect(testBridge.wallet.payments.map(({ recipient }) => recipient)).toEqual(['A', 'C'])
    expect(testBridge.wallet.balance).toBe(960)
    expect(new Set(ids).size).toBe(3)
    for (const [index, id] of ids.entries()) {
      expect(await page.history(id)).toEqual(HISTORIES[index === 1 ? 'false' : 'true'])
    }
    expect(page.sent).toHaveLength(4)
    expect(testBridge.asked).toBe(4)
  })
})

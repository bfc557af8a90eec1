import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { partTypes, toolParts } from '../support/chat-probe.ts'
import { weather } from '../support/agents.ts'
import { approvingClients, liveClient, ourClients } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { TestBridge } from './support/test-bridge.ts'
import { callPayment, paymentTool } from './support/payments.ts'

const PARTS = ['step-start', 'tool-process_payment', 'data-approval', 'step-start', 'text']

const AUTO_SENT = (['approvals', 'both'] as const).flatMap((autoSend) =>
  [true, false].flatMap((approved) =>
    ['[[say Done.]]', '[[finish STOP]]'].map((next) => ({ autoSend, approved, next })),
  ),
)

const clients = [...approvingClients, liveClient, ...ourClients]

describe.each(clients)('$name', (client) => {
  // Each client requests, approves and denies. They share the other tests.
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  test('[AP1] a call that needs approval is shown and does not run', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    const [id = ''] = chat.asked
    expect(chat.lastMessage?.parts).toMatchObject([
      { type: 'step-start' },
      { state: 'approval-requested', input: { amount: 50, recipient: '花子' }, approval: { id } },
      {
        type: 'data-approval',
        id,
        data: { state: 'requested', approvers: 1 },
      },
    ])
    expect(await page.inbox()).toMatchObject([{ id, args: { amount: 50, recipient: '花子' } }])
    expect(await page.history(id)).toEqual(['requested'])
    expect(testBridge.wallet.payments).toEqual([])
    expect(testBridge.asked).toBe(1)
    expect(page.sent).toHaveLength(1)
    await expectRecord(page, chat)
  })

  it('[AP2] an approval can be decided as soon as it is shown', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    const sent = chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    await chat.until(() => chat.asked.length > 0)
    const [id = ''] = chat.asked
    expect(await page.decide(id, { approved: true })).toMatchObject({ status: 200 })
    await sent
    await page.untilMessages((messages) => partTypes(messages.at(-1)).at(-1) === 'text')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(await page.history(id)).toEqual(['requested', 'approved', 'started', 'succeeded'])
    await expectRecord(page, await page.open(client))
  })

  test('[AP3] an approved call runs once, and the reply continues in the same message', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    const [id = ''] = chat.asked
    const messageId = chat.lastMessage?.id
    await chat.decide(true)
    expect(chat.lastMessage?.id).toBe(messageId)
    expect(partTypes(chat.lastMessage)).toEqual(PARTS)
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-available', output: { balance: 950 }, approval: { id, approved: true } },
    ])
    expect(chat.text).toBe('Paid.')
    expect(testBridge.wallet.payments).toEqual([{ amount: 50, recipient: '花子' }])
    expect(testBridge.wallet.balance).toBe(950)
    expect(testBridge.results).toMatchObject([{ success: true, balance: 950 }])
    expect(await page.history(id)).toEqual(['requested', 'approved', 'started', 'succeeded'])
    expect(await page.inbox()).toEqual([])
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
    await chat.send('[[say And now?]]')
    expect(chat.text).toBe('And now?')
    await expectRecord(page, chat)
  })

  test('[AP4] a denied call never runs, and the model receives the denial', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say As you wish.]]`)
    const [id = ''] = chat.asked
    await chat.decide(false)
    expect(partTypes(chat.lastMessage)).toEqual(PARTS)
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-denied', approval: { id, approved: false } },
    ])
    expect(chat.text).toBe('As you wish.')
    expect(testBridge.results).toMatchObject([{ status: 'denied' }])
    expect(testBridge.wallet).toMatchObject({ payments: [], balance: 1_000 })
    expect(await page.history(id)).toEqual(['requested', 'denied'])
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
    await chat.send('[[say And now?]]')
    await expectRecord(page, chat)
  })

  it('[AP4] the reason of a denial reaches the model, the record and the page', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say わかりました。]]`)
    const [id = ''] = chat.asked
    const reason = '高すぎます "とても"'
    await chat.decide({ approved: false, reason })
    expect(testBridge.results).toMatchObject([{ status: 'denied', reason }])
    expect(chat.lastMessage?.parts).toMatchObject([
      {},
      { state: 'output-denied', approval: { id, approved: false, reason } },
      { data: { state: 'denied', reason } },
      {},
      { text: 'わかりました。' },
    ])
    expect((await page.approval(id)).history).toMatchObject([
      { type: 'requested' },
      { type: 'denied', by: 'hanako', reason },
    ])
    expect(testBridge.wallet.payments).toEqual([])
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
  })

  it('[AP3] text of the model before the call stays before it', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`[[say 確認します。]]${callPayment(50)}[[then]][[say Paid.]]`)
    await chat.decide(true)
    expect(partTypes(chat.lastMessage)).toEqual([
      'step-start',
      'text',
      'tool-process_payment',
      'data-approval',
      'step-start',
      'text',
    ])
    expect(chat.text).toBe('確認します。Paid.')
    expect(testBridge.wallet.balance).toBe(950)
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
  })

  it.each(AUTO_SENT)(
    '[AP11] [AP71] sends by itself on $autoSend, approved $approved, then $next: one request',
    async ({ autoSend, approved, next }) => {
      await using testBridge = await TestBridge.open()
      const page = testBridge.page()
      const chat = await page.open(client, { autoSend })
      await chat.send(`${callPayment(5)}[[then]]${next}`)
      await chat.decide(approved)
      expect(toolParts(chat.lastMessage)).toMatchObject([
        { state: approved ? 'output-available' : 'output-denied' },
      ])
      expect(testBridge.wallet.payments).toHaveLength(approved ? 1 : 0)
      // Once for the message and once for the decision, whether or not the model says something.
      expect(testBridge.asked).toBe(2)
      expect(page.sent).toHaveLength(2)
      await expectRecord(page, chat)
    },
  )

  // The client library sends each decision at once.
  test.skipIf(client.ours)(
    '[AP11] a client that sends only on tool results sends nothing by itself',
    async () => {
      await using testBridge = await TestBridge.open({
        tools: (wallet) => [paymentTool(wallet), weather],
      })
      const page = testBridge.page()
      const chat = await page.open(client, { autoSend: 'tool-calls' })
      const look = '[[call get_weather {"place":"A"}]]'
      await chat.send(`${look}[[then]]${look}${callPayment(5)}[[then]][[say Paid.]]`)
      expect(page.sent).toHaveLength(1)
      await chat.decide(true)
      expect(page.sent).toHaveLength(1)
      expect(testBridge.wallet.payments).toEqual([])
      await chat.sendAsItIs()
      expect(chat.text).toBe('Paid.')
      expect(testBridge.wallet.payments).toHaveLength(1)
      expect(page.sent).toHaveLength(2)
      await expectRecord(page, chat)
    },
  )
})

import { describe, expect } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import type { ApprovalPolicy } from '../../src/approvals/policy.ts'
import { toolParts } from '../support/chat-probe.ts'
import { clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { TestBridge } from './support/test-bridge.ts'
import { callPayment, paymentTool } from './support/payments.ts'

const edited = { amount: 40, recipient: '花子', currency: 'USD' }

/** Small payments need nobody, the owner decides up to 100, a manager up to 500, and both beyond it. */
const byAmount: ApprovalPolicy = ({ args: { amount, currency }, chat: { principalId } }) => {
  if (currency === 'JPY') throw new Error('No rate for the yen.')
  const owner = { principals: [principalId] }
  const manager = { roles: ['manager'] }
  if (Number(amount) > 500) return { chain: [owner, manager] }
  if (Number(amount) > 100) return { deciders: manager }
  return { required: Number(amount) >= 10, deciders: owner }
}

const clients = clientsWith('7')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[AP5] edited arguments with the decision run instead of those shown', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Paid 40.]]`)
    const [id = ''] = chat.asked
    chat.edit(id, edited)
    await chat.decide(true)
    expect(testBridge.wallet).toMatchObject({ payments: [{ amount: 40 }], balance: 960 })
    expect(chat.lastMessage?.parts).toMatchObject([
      {},
      { state: 'output-available', input: { amount: 50 }, output: { amount: 40, balance: 960 } },
      { data: { state: 'approved', editedArgs: edited } },
      {},
      { text: 'Paid 40.' },
    ])
    expect(testBridge.results).toMatchObject([{ amount: 40, edited_arguments: edited }])
    expect((await page.approval(id)).history).toMatchObject([
      { type: 'requested', args: { amount: 50 } },
      { type: 'approved', editedArgs: edited },
      { type: 'started', args: edited },
      { type: 'succeeded', output: { amount: 40 } },
    ])
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
  })

  it('[AP5] arguments can be edited in the inbox', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Paid 40.]]`)
    const [id = ''] = chat.asked
    const answer = await page.decide(id, { approved: true, reason: 'ok', args: edited })
    expect(answer).toMatchObject({ status: 200, body: { approval: { editedArgs: edited } } })
    await page.untilMessages((messages) => toolParts(messages.at(-1))[0]?.output !== undefined)
    expect(testBridge.wallet).toMatchObject({ payments: [{ amount: 40 }], balance: 960 })
    expect(testBridge.results).toMatchObject([{ amount: 40, edited_arguments: edited }])
    const reloaded = await page.open(client)
    expect(reloaded.lastMessage?.parts).toMatchObject([
      {},
      { input: { amount: 50 }, output: { amount: 40 } },
      { data: { state: 'approved', editedArgs: edited } },
      {},
      { text: 'Paid 40.' },
    ])
    expect(await page.history(id)).toEqual(['requested', 'approved', 'started', 'succeeded'])
    await expectRecord(page, reloaded)
  })

  it.each([
    ['of a wrong type', { amount: '40', recipient: '花子' }, /amount/],
    ['that the tool forbids', { amount: -1, recipient: '花子' }, /amount/],
    ['that lack something', { amount: 40 }, /recipient/],
  ])(
    '[AP5] edited arguments %s are rejected, and the approval stays open',
    async (_case, args, why) => {
      await using testBridge = await TestBridge.open()
      const page = testBridge.page()
      const chat = await page.open(client)
      await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
      const [id = ''] = chat.asked
      const { status, body } = await page.decide(id, { approved: true, args })
      expect([status, body.error?.code]).toEqual([400, 'bad-request'])
      expect(body.error?.message).toMatch(why)
      chat.edit(id, args)
      await chat.decide(true)
      expect(chat.status).toBe('error')
      expect(chat.error?.message).toMatch(why)
      expect(page.sent).toHaveLength(2)
      expect(testBridge.wallet.payments).toEqual([])
      expect(await page.history(id)).toEqual(['requested', 'decision-refused'])
      const reloaded = await page.open(client)
      await reloaded.decide(true)
      expect(testBridge.wallet.payments).toEqual([{ amount: 50, recipient: '花子' }])
      await expectRecord(page, reloaded)
    },
  )

  it.each([
    ['over the limit', { amount: 900, recipient: '花子' }],
    ['for others to decide', { amount: 300, recipient: '花子' }],
    ['that the policy cannot judge', { amount: 40, recipient: '花子', currency: 'JPY' }],
  ])('[AP5][AP5] an edit %s is rejected, and the approval stays open', async (_case, args) => {
    await using testBridge = await TestBridge.open({ approvals: byAmount })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    const [id = ''] = chat.asked
    const { status, body } = await page.decide(id, { approved: true, args })
    expect([status, body.error?.code]).toEqual([409, 'not-editable'])
    chat.edit(id, args)
    await chat.decide(true)
    expect(chat.refusal).toBe('not-editable')
    expect(testBridge.wallet.payments).toEqual([])
    expect(await page.history(id)).toEqual(['requested', 'decision-refused'])
    const reloaded = await page.open(client)
    reloaded.edit(id, { amount: 4, recipient: '花子' })
    await reloaded.decide(true)
    expect(testBridge.wallet.payments).toEqual([{ amount: 4, recipient: '花子' }])
    await expectRecord(page, reloaded)
  })

  it('[AP5] one of two is edited to invalid arguments: the other runs, and this one stays open', async () => {
    // Without the sweep, only the request itself starts the call.
    await using testBridge = await TestBridge.open({ limits: { sweepMs: 600_000 } })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Done.]]`)
    const [alice = '', bob = ''] = chat.asked
    chat.edit(bob, { amount: -1, recipient: 'Bob' })
    await chat.decide(true)
    await expect
      .poll(() => testBridge.wallet.payments)
      .toEqual([{ amount: 30, recipient: 'Alice' }])
    await expect.poll(() => page.history(alice)).toContain('succeeded')
    // The client library decides each one by itself, and keeps no decision that was refused.
    const noted = client.ours ? [] : ['decision-refused']
    expect(await page.history(bob)).toEqual(['requested', ...noted])
  })

  it('[AP5] one of two is edited; the other runs as shown', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Done.]]`)
    const [, bob = ''] = chat.asked
    chat.edit(bob, { amount: 4, recipient: 'Bob' })
    await chat.decide(true)
    expect(testBridge.wallet.payments).toEqual([
      { amount: 30, recipient: 'Alice' },
      { amount: 4, recipient: 'Bob' },
    ])
    expect(testBridge.results).toMatchObject([
      { amount: 30 },
      { amount: 4, edited_arguments: { amount: 4, recipient: 'Bob' } },
    ])
    await expectRecord(page, chat)
  })

  it('[AP5] edited arguments of a denied call have no effect', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say No.]]`)
    const [id = ''] = chat.asked
    chat.edit(id, edited)
    await chat.decide(false)
    expect(testBridge.wallet.payments).toEqual([])
    expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'output-denied' }])
    await expectRecord(page, chat)
  })

  it('[AP21] a tool that throws on edited arguments fails like any other', async () => {
    const secret = 'postgres://root:hunter2@db.internal'
    await using testBridge = await TestBridge.open({
      tools: (wallet) => [
        paymentTool(wallet, {
          before: () => {
            throw new Error(secret)
          },
        }),
      ],
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Sorry.]]`)
    const [id = ''] = chat.asked
    chat.edit(id, edited)
    await chat.decide(true)
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-error', errorText: 'The tool process_payment failed.' },
    ])
    expect(JSON.stringify([chat.messages, await page.messages()])).not.toContain('hunter2')
    expect(await page.history(id)).toEqual(['requested', 'approved', 'started', 'failed'])
    await expectRecord(page, chat)
  })
})

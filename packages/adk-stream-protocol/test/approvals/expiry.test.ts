import { describe, expect } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { partTypes, toolParts } from '../support/chat-probe.ts'
import { clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { TestBridge } from './support/test-bridge.ts'
import { callPayment } from './support/payments.ts'

const clients = clientsWith('7')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[AP6] an approval without a decision expires everywhere, and the model receives that', async () => {
    await using testBridge = await TestBridge.open({ approvalDeadlineMs: 800 })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Too late.]]`)
    const [id = ''] = chat.asked
    await page.untilMessages((messages) => partTypes(messages.at(-1)).at(-1) === 'text')
    expect(await page.inbox()).toEqual([])
    expect(await page.decide(id, { approved: true })).toMatchObject({
      status: 410,
      body: { error: { code: 'approval-expired' } },
    })
    // The page that stayed open clicks late, and catches up.
    await chat.decide(true)
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
    expect(testBridge.wallet).toMatchObject({ payments: [], balance: 1_000 })
    expect(testBridge.results).toMatchObject([{ status: 'expired' }])
    expect(testBridge.asked).toBe(2)
    expect(await page.history(id)).toEqual(['requested', 'expired'])
    const reloaded = await page.open(client)
    expect(reloaded.lastMessage?.parts).toMatchObject([
      {},
      { type: 'tool-process_payment', state: 'output-error' },
      { type: 'data-approval', data: { state: 'expired' } },
      {},
      { text: 'Too late.' },
    ])
    await expectRecord(page, reloaded)
    await reloaded.send('[[say Still here.]]')
    expect(reloaded.text).toBe('Still here.')
    await expectRecord(page, reloaded)
  })

  it('[AP6] the deadline is shown, and a late decision expires the approval before any sweep', async () => {
    await using testBridge = await TestBridge.open({
      approvalDeadlineMs: 30,
      limits: { sweepMs: 3_600_000 },
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Too late.]]`)
    const [id = ''] = chat.asked
    const { approval } = await page.approval(id)
    expect(Number(approval['deadline']) - Number(approval['requestedAt'])).toBe(30)
    expect(chat.lastMessage?.parts.at(-1)?.data).toMatchObject({ deadline: approval['deadline'] })
    while (Date.now() <= Number(approval['deadline'])) await new Promise(setImmediate)
    await chat.decide(true)
    expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'output-error' }])
    expect(chat.text).toBe('Too late.')
    expect(await page.history(id)).toEqual(['requested', 'expired'])
    expect(testBridge.wallet.payments).toEqual([])
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
  })

  it('[AP6] a late denial is rejected, and the page reloads the chat', async () => {
    await using testBridge = await TestBridge.open({ approvalDeadlineMs: 800 })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Too late.]]`)
    const [id = ''] = chat.asked
    await page.untilState(id, 'expired')
    await chat.decide({ approved: false, reason: 'late' })
    expect(chat.refusal).toBe('approval-expired')
    expect(page.sent).toHaveLength(2)
    expect(await page.history(id)).toEqual(['requested', 'expired'])
    expect(testBridge.wallet.payments).toEqual([])
  })

  it('[AP6] one of two expires, the other was decided in time', async () => {
    await using testBridge = await TestBridge.open({
      approvals: {
        process_payment: ({ args }) => ({
          deadlineMs: args['recipient'] === 'Bob' ? 800 : 600_000,
        }),
      },
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Half.]]`)
    const [alice = '', bob = ''] = chat.asked
    await page.untilState(bob, 'expired')
    await page.decide(alice, { approved: true })
    await page.untilMessages((messages) => partTypes(messages.at(-1)).at(-1) === 'text')
    expect(testBridge.wallet.payments).toEqual([{ amount: 30, recipient: 'Alice' }])
    expect(testBridge.results).toMatchObject([{ success: true }, { status: 'expired' }])
    expect(await page.history(alice)).toEqual(['requested', 'approved', 'started', 'succeeded'])
    expect(await page.history(bob)).toEqual(['requested', 'expired'])
    const reloaded = await page.open(client)
    expect(toolParts(reloaded.lastMessage).map(({ state }) => state)).toEqual([
      'output-available',
      'output-error',
    ])
    expect(testBridge.asked).toBe(2)
    await expectRecord(page, reloaded)
  })
})

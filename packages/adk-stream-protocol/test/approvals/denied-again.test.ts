import { describe, expect } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { callPayment } from './support/payments.ts'
import { TestBridge } from './support/test-bridge.ts'

const REPEATED = [
  ['with the same arguments', callPayment(50)],
  ['with a lower amount', callPayment(49)],
  ['for another person', callPayment(50, 'Hanako')],
] as const

const clients = clientsWith('6')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it.each(REPEATED)(
    '[AP470] a denied call does not request approval again %s',
    async (_how, repeated) => {
      await using testBridge = await TestBridge.open()
      const page = testBridge.page()
      const chat = await page.open(client)
      await chat.send(`${callPayment(50)}[[then]]${repeated}[[then]][[say Not paid.]]`)
      await chat.decide(false)
      expect(chat.text).toBe('Not paid.')
      expect(await page.inbox()).toEqual([])
      expect(testBridge.wallet.payments).toEqual([])
      expect(testBridge.results).toMatchObject([
        { status: 'denied' },
        { status: 'denied', retryable: false },
      ])
      await expectRecord(page, await page.open(client))
    },
  )

  it.each([
    ['another call', [false], callPayment(40, 'Bob')],
    ['a call after a denial with a reason', [{ approved: false, reason: '40' }], callPayment(40)],
  ] as const)('[AP470] %s requests approval', async (_what, [decision], next) => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]]${next}[[then]][[say Done.]]`)
    await chat.decide(decision)
    await expect.poll(() => page.inbox()).toMatchObject([{ args: { amount: 40 } }])
  })

  it('[AP470] a denied call requests approval again after a new message of the person', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Not paid.]]`)
    await chat.decide(false)
    await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    expect(await page.inbox()).toMatchObject([{ args: { amount: 50 } }])
    await chat.decide(true)
    expect(testBridge.wallet.payments).toHaveLength(1)
  })
})

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { times } from '../test/support/long-run.ts'
import { longTest } from '../test/support/long-test.ts'
import { modesOf } from './support/modes.ts'
import { ask, type Choice, decide, ending, RAN, readArguments } from './support/approvals.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

type TwoPayments = [alice: Choice, bob: Choice, first: 'Alice' | 'Bob', paid: string[]]

/** The first in `npm test`. That each of them holds for every client is tried without a browser. */
const TWO_PAYMENTS: Readonly<Record<'sse' | 'live', TwoPayments[]>> = {
  sse: [
    ['approve', 'deny', 'Alice', ['Alice 30']],
    ['approve', 'approve', 'Alice', ['Alice 30', 'Bob 40']],
    ['deny', 'approve', 'Bob', ['Bob 40']],
  ],
  live: [
    ['approve', 'approve', 'Bob', ['Bob 40', 'Alice 30']],
    ['deny', 'approve', 'Alice', ['Bob 40']],
    ['deny', 'deny', 'Alice', []],
  ],
}

describe.each(modesOf('sse'))('%s', (mode) => {
  longTest('[DM170] a message that led to a payment cannot be replaced', async () => {
    const words = 'Send 50 dollars to Alice'
    const { page, card, log, input, idle, books } = await ask(testDemo, words, { mode })
    await decide(card('Alice'), 'approve')
    await ending(card('Alice'))
    await idle()
    const message = log.locator('[data-role=user]').first()
    await message.getByRole('button', { name: 'Edit and send again' }).click()
    await page.getByLabel('Edit the message').fill('Something else')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('Send a new message instead.').waitFor()
    await ending(card('Alice'))
    await message.getByText(words).waitFor()
    await expect.poll(() => input.inputValue()).toBe('Something else')
    expect(await books.paid()).toHaveLength(1)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM34] a pending payment shows its arguments and its preview, and runs once after the approval', async () => {
    const words = '花子さんに50ドル送金してください'
    const visit = { mode, locale: 'ja-JP' }
    const { page, card, books, id, idle, answers, results } = await ask(testDemo, words, visit)
    const payment = card('花子')
    expect(await payment.locator('.adk-call-description').textContent()).toBe(
      '花子さんに50.00ドルを送金',
    )
    const preview = await payment.locator('.adk-preview').textContent()
    expect(preview).toMatch(/残高.*1,000.00ドル.*950.00ドル/)
    await payment.getByText('詳細').click()
    expect(await readArguments(payment)).toEqual([
      ['項目', '値'],
      ['金額', '50'],
      ['送金先', '花子'],
      ['通貨', 'USD'],
    ])
    expect(await payment.getByRole('timer').textContent()).toMatch(/^9:\d\d$|^10:00$/)
    expect(await books.paid()).toEqual([])
    await snap(page, `approval-asked-${mode}`)

    await payment.getByRole('button', { name: '承認' }).click()
    await payment.getByText('承認しました。', { exact: true }).waitFor()
    await idle()
    expect(await books.paid()).toEqual(['花子 50'])
    expect(await books.history(id)).toEqual(RAN)
    expect(results()).toMatchObject([{ success: true, amount: 50, wallet_balance: 950 }])
    expect(await answers.count()).toBe(1)
    expect(await answers.locator('.markdown').last().textContent()).toContain('花子')
    await snap(page, `approval-approved-${mode}`)

    const shown = await answers.textContent()
    await page.reload()
    await payment.getByText('承認しました。', { exact: true }).waitFor()
    expect(await answers.textContent()).toBe(shown)
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  longTest('[DM34] a denied payment does not run, and the model receives the reason', async () => {
    const scene = await ask(testDemo, 'Send $50 to Alice', { mode })
    const { page, card, books, id, idle, answers, results } = scene
    const payment = card('Alice')
    await payment.getByRole('button', { name: 'Deny…' }).click()
    await payment.getByLabel('Reason (optional)').fill('not this month')
    await payment.getByRole('button', { name: 'Deny', exact: true }).click()
    await payment.getByText('Denied. It did not run. Reason: not this month').waitFor()
    await idle()
    expect(await books.paid()).toEqual([])
    expect(await books.history(id)).toEqual(['requested', 'denied'])
    expect(results()).toMatchObject([{ status: 'denied', reason: 'not this month' }])
    expect(await answers.count()).toBe(1)
    expect(await answers.locator('.markdown').last().textContent()).toContain('not this month')
    await snap(page, `approval-denied-${mode}`)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM35] an invalid edit is explained at its field; an edited payment shows the requested and the approved arguments', async () => {
    const scene = await ask(testDemo, 'Send $50 to Alice', { mode })
    const { page, card, books, id, idle, results } = scene
    const payment = card('Alice')
    const approve = payment.getByRole('button', { name: 'Approve with these changes' })
    await payment.getByRole('button', { name: 'Edit…' }).click()
    await payment.getByLabel('Amount').fill('')
    await approve.click()
    await payment.getByText('Enter a number.').waitFor()
    await payment.getByLabel('Amount').fill('40.5')
    await payment.getByLabel('Recipient').fill('')
    await approve.click()
    await payment.getByText('Enter a value.').waitFor()
    expect(await books.pending()).toEqual([id])
    expect(await books.paid()).toEqual([])
    await snap(page, `approval-refused-${mode}`)

    // What was typed is kept.
    expect(await payment.getByLabel('Amount').inputValue()).toBe('40.5')
    await payment.getByLabel('Recipient').fill('Alicia')
    await approve.click()
    const edited = card('Alicia')
    await ending(edited)
    await idle()
    expect(await books.paid()).toEqual(['Alicia 40.5'])
    expect(await books.balance()).toBe(959.5)
    expect(await books.history(id)).toEqual(RAN)
    expect(results()).toMatchObject([{ success: true, amount: 40.5, recipient: 'Alicia' }])
    const table = [
      ['Argument', 'Requested', 'Approved'],
      ['Amount', '50', '40.5'],
      ['Recipient', 'Alice', 'Alicia'],
      ['Currency', 'USD', 'USD'],
    ]
    expect(await readArguments(edited)).toEqual(table)
    await snap(page, `approval-edited-${mode}`)
    await page.reload()
    await edited.waitFor()
    expect(await readArguments(edited)).toEqual(table)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test.each(TWO_PAYMENTS[mode].slice(0, times(1, 3)))(
    '[DM36] two payments at once: %s and %s, %s first',
    async (...row) => {
      const [alice, bob, first, paid] = row
      const words = 'Send $30 to Alice and $40 to Bob'
      const { page, card, books, idle, answers, results } = await ask(testDemo, words, { mode })
      expect(await books.pending()).toHaveLength(2)
      const choices = { Alice: alice, Bob: bob }
      const second = first === 'Alice' ? 'Bob' : 'Alice'
      await decide(card(first), choices[first])
      // The first is done while the second still waits.
      await ending(card(first), choices[first])
      expect(await books.pending()).toHaveLength(1)
      await decide(card(second), choices[second])
      await ending(card(second), choices[second])
      await answers.locator('.markdown').last().waitFor()
      await idle()
      expect(await books.paid()).toEqual(paid)
      expect(await books.pending()).toEqual([])
      expect(results()).toHaveLength(2)
      expect(await answers.count()).toBe(1)
      await snap(page, `approvals-two-${alice}-${bob}-${first}-${mode}`)
    },
  )
})

describe.each(modesOf('live'))('%s', (mode) => {
  longTest(
    '[DM71] a payment that depends on another one is requested after its approval, below it, and not after a denial',
    async () => {
      const { page, card, books, say, idle, answers, results } = await ask(
        testDemo,
        'Send $25 to Carol, then $35 to Dave',
        { mode },
      )
      await decide(card('Carol'), 'deny')
      await ending(card('Carol'), 'deny')
      await answers.locator('.markdown').last().waitFor()
      await idle()
      expect(await card('Dave').count()).toBe(0)
      expect(await books.pending()).toEqual([])
      expect(await books.paid()).toEqual([])
      await snap(page, `approvals-not-in-turn-${mode}`)

      await say('Send $20 to Alice, then $30 to Bob')
      await card('Alice').getByRole('button', { name: 'Approve' }).waitFor()
      await idle()
      expect(await card('Bob').count()).toBe(0)
      await decide(card('Alice'), 'approve')
      await card('Bob').getByRole('button', { name: 'Approve' }).waitFor()
      await idle()
      expect(await books.paid()).toEqual(['Alice 20'])
      await decide(card('Bob'), 'approve')
      await ending(card('Bob'))
      await idle()
      expect(await books.paid()).toEqual(['Alice 20', 'Bob 30'])
      expect(results()).toMatchObject([
        { status: 'denied' },
        { recipient: 'Alice' },
        { recipient: 'Bob' },
      ])
      const told = /Sent \$20\.00.*I sent \$20\.00.*Sent \$30\.00.*I sent \$30\.00/s
      const shown = await answers.last().textContent()
      expect(shown).toMatch(told)
      expect(shown?.match(/I sent/g)).toHaveLength(2)
      await snap(page, `approvals-in-turn-${mode}`)
      await page.reload()
      await ending(card('Bob'))
      expect(await answers.last().textContent()).toBe(shown)
    },
  )
})

describe.each(modesOf('live'))('%s', (mode) => {
  longTest(
    '[DM161] a payment that the wallet refuses is shown as failed, and its pending card showed the current balance',
    async () => {
      const words = 'Send $450 to Ann and $450 to Ben and $450 to Cid'
      const { page, card, books, idle } = await ask(testDemo, words, { mode })
      for (const name of ['Ann', 'Ben']) {
        await decide(card(name), 'approve')
        await card(name).getByText('Done').waitFor()
      }
      const refused = card('Cid')
      const reason = 'Not enough money: the balance is $100.00.'
      await refused.getByText(`${reason} This payment would fail.`).waitFor()
      const button = refused.getByRole('button', { name: 'Approve $450.00' })
      expect(await button.getAttribute('aria-disabled')).toBe('true')
      // A stock client does not see the preview.
      const [id = ''] = await books.pending()
      const { url } = testDemo.demo
      const data = { approved: true }
      await page.request.post(`${url}/approvals/${id}`, { data, headers: { origin: url } })
      await refused.getByText('Approved, but the call failed.').waitFor()
      await refused.getByText('Not sent: $450.00 to Cid').waitFor()
      expect(await refused.locator('.adk-tool-state').textContent()).toBe('Failed')
      expect(await refused.locator('.adk-failure').textContent()).toBe(reason)
      await idle()
      expect(await books.paid()).toEqual(['Ann 450', 'Ben 450'])
      await snap(page, `payment-refused-${mode}`)
    },
  )
})

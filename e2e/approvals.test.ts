import { describe, expect, test } from 'vitest'

import { times } from '../test/support/long-run.ts'
import { longTest } from '../test/support/long-test.ts'
import { testModes } from './support/modes.ts'
import {
  requestApproval,
  type Choice,
  decide,
  waitForOutcome,
  RAN_ONCE,
  readArguments,
} from './support/approvals.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

type TwoPayments = [alice: Choice, bob: Choice, first: 'Alice' | 'Bob', paid: string[]]

/** `npm test` runs the first of each list. Tests without a browser run all of them with every client. */
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

describe.each(testModes('sse'))('%s', (mode) => {
  longTest('[DM170] a message that led to a payment cannot be replaced', async () => {
    const text = 'Send 50 dollars to Alice'
    const { page, card, log, input, waitUntilIdle, account } = await requestApproval(
      testDemo,
      text,
      { mode },
    )
    await decide(card('Alice'), 'approve')
    await waitForOutcome(card('Alice'))
    await waitUntilIdle()
    const message = log.locator('[data-role=user]').first()
    await message.getByRole('button', { name: 'Edit and send again' }).click()
    await message.getByText(/has run since this message, so it cannot be replaced/).waitFor()
    await page.getByLabel('Edit the message').fill('Something else')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('Write a new one.').waitFor()
    await waitForOutcome(card('Alice'))
    await message.getByText(text).waitFor()
    await expect.poll(() => input.inputValue()).toBe('Something else')
    expect(await account.payments()).toHaveLength(1)
  })
})

describe.each(testModes('sse'))('%s', (mode) => {
  longTest(
    '[DM34] a pending payment shows its arguments and its preview, and runs once after the approval',
    async () => {
      const text = '花子さんに50ドル送金してください'
      const visit = { mode, locale: 'ja-JP' }
      const { page, card, account, id, waitUntilIdle, replies, results } = await requestApproval(
        testDemo,
        text,
        visit,
      )
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
      expect(await account.payments()).toEqual([])
      await takeScreenshot(page, `approval-requested-${mode}`)

      await payment.getByRole('button', { name: '承認' }).click()
      await payment.getByText('承認しました。', { exact: true }).waitFor()
      await waitUntilIdle()
      expect(await account.payments()).toEqual(['花子 50'])
      expect(await account.history(id)).toEqual(RAN_ONCE)
      expect(results()).toMatchObject([{ success: true, amount: 50, wallet_balance: 950 }])
      expect(await replies.count()).toBe(1)
      expect(await replies.locator('.markdown').last().textContent()).toContain('花子')
      await takeScreenshot(page, `approval-approved-${mode}`)

      const shown = await replies.textContent()
      await page.reload()
      await payment.getByText('承認しました。', { exact: true }).waitFor()
      expect(await replies.textContent()).toBe(shown)
    },
  )
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest('[DM34] a denied payment does not run, and the model receives the reason', async () => {
    const { page, card, account, id, waitUntilIdle, replies, results } = await requestApproval(
      testDemo,
      'Send $50 to Alice',
      { mode },
    )
    const payment = card('Alice')
    await payment.getByRole('button', { name: 'Deny…' }).click()
    await payment.getByLabel('Reason (optional)').fill('not this month')
    await payment.getByRole('button', { name: 'Deny', exact: true }).click()
    await payment.getByText('Denied. Nothing was done. Reason: not this month').waitFor()
    await waitUntilIdle()
    expect(await account.payments()).toEqual([])
    expect(await account.history(id)).toEqual(['requested', 'denied'])
    expect(results()).toMatchObject([{ status: 'denied', reason: 'not this month' }])
    expect(await replies.count()).toBe(1)
    expect(await replies.locator('.markdown').last().textContent()).toContain('not this month')
    await takeScreenshot(page, `approval-denied-${mode}`)
  })
})

describe.each(testModes('sse'))('%s', (mode) => {
  test('[DM35] an invalid edit is explained at its field; an edited payment shows the requested and the approved arguments', async () => {
    const { page, card, account, id, waitUntilIdle, results } = await requestApproval(
      testDemo,
      'Send $50 to Alice',
      { mode },
    )
    // Its name follows the edits.
    const payment = page.locator('[data-tool=process_payment]')
    const approve = payment.getByRole('button', { name: /^Approve/ })
    await payment.getByRole('button', { name: 'Edit…' }).click()
    await payment.getByLabel('Amount').fill('')
    await approve.click()
    await payment.getByText('Enter a number.').waitFor()
    await payment.getByLabel('Amount').fill('40.5')
    await payment.getByLabel('Recipient').fill('')
    await approve.click()
    await payment.getByText('Enter a value.').waitFor()
    expect(await account.pendingApprovals()).toEqual([id])
    expect(await account.payments()).toEqual([])
    await takeScreenshot(page, `approval-refused-${mode}`)

    // The edits are kept.
    expect(await payment.getByLabel('Amount').inputValue()).toBe('40.5')
    await payment.getByLabel('Recipient').fill('Alicia')
    await approve.click()
    const edited = card('Alicia')
    await waitForOutcome(edited)
    await waitUntilIdle()
    expect(await account.payments()).toEqual(['Alicia 40.5'])
    expect(await account.balance()).toBe(959.5)
    expect(await account.history(id)).toEqual(RAN_ONCE)
    expect(results()).toMatchObject([{ success: true, amount: 40.5, recipient: 'Alicia' }])
    const table = [
      ['Argument', 'Requested', 'Approved'],
      ['Amount', '50', '40.5'],
      ['Recipient', 'Alice', 'Alicia'],
      ['Currency', 'USD', 'USD'],
    ]
    expect(await readArguments(edited)).toEqual(table)
    await takeScreenshot(page, `approval-edited-${mode}`)
    await page.reload()
    await edited.waitFor()
    expect(await readArguments(edited)).toEqual(table)
  })
})

describe.each(testModes('sse'))('%s', (mode) => {
  test.each(TWO_PAYMENTS[mode].slice(0, times(1, 3)))(
    '[DM36] two payments at once: %s and %s, %s first',
    async (...row) => {
      const [alice, bob, first, paid] = row
      const text = 'Send $30 to Alice and $40 to Bob'
      const { page, card, account, waitUntilIdle, replies, results } = await requestApproval(
        testDemo,
        text,
        { mode },
      )
      expect(await account.pendingApprovals()).toHaveLength(2)
      const choices = { Alice: alice, Bob: bob }
      const second = first === 'Alice' ? 'Bob' : 'Alice'
      await decide(card(first), choices[first])
      // The first call has ended while the second is still pending.
      await waitForOutcome(card(first), choices[first])
      expect(await account.pendingApprovals()).toHaveLength(1)
      await decide(card(second), choices[second])
      await waitForOutcome(card(second), choices[second])
      await replies.locator('.markdown').last().waitFor()
      await waitUntilIdle()
      expect(await account.payments()).toEqual(paid)
      expect(await account.pendingApprovals()).toEqual([])
      expect(results()).toHaveLength(2)
      expect(await replies.count()).toBe(1)
      await takeScreenshot(page, `approvals-two-${alice}-${bob}-${first}-${mode}`)
    },
  )
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest(
    '[DM71] a payment that depends on another one is requested after its approval, below it, and not after a denial',
    async () => {
      const { page, card, account, send, waitUntilIdle, replies, results } = await requestApproval(
        testDemo,
        'Send $25 to Carol, then $35 to Dave',
        { mode },
      )
      await decide(card('Carol'), 'deny')
      await waitForOutcome(card('Carol'), 'deny')
      await replies.locator('.markdown').last().waitFor()
      await waitUntilIdle()
      expect(await card('Dave').count()).toBe(0)
      expect(await account.pendingApprovals()).toEqual([])
      expect(await account.payments()).toEqual([])
      await takeScreenshot(page, `approvals-not-in-turn-${mode}`)

      await send('Send $20 to Alice, then $30 to Bob')
      await card('Alice').getByRole('button', { name: 'Approve' }).waitFor()
      await waitUntilIdle()
      expect(await card('Bob').count()).toBe(0)
      await decide(card('Alice'), 'approve')
      await card('Bob').getByRole('button', { name: 'Approve' }).waitFor()
      await waitUntilIdle()
      expect(await account.payments()).toEqual(['Alice 20'])
      await decide(card('Bob'), 'approve')
      await waitForOutcome(card('Bob'))
      await waitUntilIdle()
      expect(await account.payments()).toEqual(['Alice 20', 'Bob 30'])
      expect(results()).toMatchObject([
        { status: 'denied' },
        { recipient: 'Alice' },
        { recipient: 'Bob' },
      ])
      const order = /Sent \$20\.00.*I sent \$20\.00.*Sent \$30\.00.*I sent \$30\.00/s
      const shown = await replies.last().textContent()
      expect(shown).toMatch(order)
      expect(shown?.match(/I sent/g)).toHaveLength(2)
      await takeScreenshot(page, `approvals-in-turn-${mode}`)
      await page.reload()
      await waitForOutcome(card('Bob'))
      expect(await replies.last().textContent()).toBe(shown)
    },
  )
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest(
    '[DM161] a pending card shows the current balance, and a payment that exceeds it cannot be approved by any client',
    async () => {
      const text = 'Send $450 to Ann and $450 to Ben and $450 to Cid'
      const { page, card, account, waitUntilIdle } = await requestApproval(testDemo, text, {
        mode,
      })
      for (const name of ['Ann', 'Ben']) {
        await decide(card(name), 'approve')
        await card(name).getByText('Done').waitFor()
      }
      const refused = card('Cid')
      const reason = 'Not enough money: the balance is $100.00. This payment would fail.'
      await refused.getByText(reason).waitFor()
      const button = refused.getByRole('button', { name: 'Approve $450.00' })
      expect(await button.getAttribute('aria-disabled')).toBe('true')
      // A stock client does not show the preview.
      const [id = ''] = await account.pendingApprovals()
      const { url } = testDemo.demo
      const data = { approved: true }
      const response = await page.request.post(`${url}/approvals/${id}`, {
        data,
        headers: { origin: url },
      })
      expect(await response.json()).toMatchObject({
        error: { code: 'call-blocked', preview: { blocked: reason } },
      })
      await takeScreenshot(page, `payment-blocked-${mode}`)
      await decide(refused, 'deny')
      await waitForOutcome(refused, 'deny')
      await refused.getByText('Not sent: $450.00 to Cid').waitFor()
      await waitUntilIdle()
      expect(await account.payments()).toEqual(['Ann 450', 'Ben 450'])
    },
  )
})

import { describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { testModes } from './support/modes.ts'
import {
  requestApproval,
  decide,
  waitForOutcome,
  RAN_ONCE,
  waitForChangedPreview,
} from './support/approvals.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { openTestDemo } from './support/test-demo.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

describe.each(testModes('live'))('%s', (mode) => {
  longTest('[DM37] a pending approval is kept when the server restarts', async () => {
    const { page, card, account, id, waitUntilIdle, replies } = await requestApproval(
      testDemo,
      'Send $50 to Alice',
      {
        mode,
      },
    )
    await testDemo.restart()
    await decide(card('Alice'), 'approve')
    await waitForOutcome(card('Alice'))
    // In live mode, the model has said before that it needs an approval.
    const texts = () => replies.locator('.markdown').allTextContents()
    await expect.poll(async () => (await texts()).at(-1)).toContain('I sent $50.00 to Alice')
    await waitUntilIdle()
    expect((await texts()).join().match(/I sent/g)).toHaveLength(1)
    expect(await account.payments()).toEqual(['Alice 50'])
    expect(await account.history(id)).toEqual(RAN_ONCE)
    expect(await replies.count()).toBe(1)
    await takeScreenshot(page, `approval-restarted-${mode}`)
  })

  longTest('[DM38] an approval above the last message is decided in its place', async () => {
    const { page, card, account, id, send, waitUntilIdle, replies, results } =
      await requestApproval(testDemo, 'Send $50 to Alice', { mode })
    await send('Hello')
    await replies.nth(1).locator('.markdown').waitFor()
    await waitUntilIdle()
    const greeting = await replies.nth(1).textContent()
    expect(await account.pendingApprovals()).toEqual([id])
    await takeScreenshot(page, `approval-above-${mode}`)
    await decide(card('Alice'), 'approve')
    await waitForOutcome(card('Alice'))
    await waitUntilIdle()
    expect(await account.payments()).toEqual(['Alice 50'])
    expect(await account.history(id)).toEqual(RAN_ONCE)
    expect(results()).toMatchObject([{ success: true }])
    expect(await replies.count()).toBe(2)
    expect(await replies.nth(0).textContent()).toContain('I sent $50.00 to Alice')
    expect(await replies.nth(1).textContent()).toBe(greeting)
    await takeScreenshot(page, `approval-above-decided-${mode}`)
  })
})

describe.each(testModes('sse'))('%s', (mode) => {
  test('[DM37] [DM72] a pending approval is kept after a reload, and two quick clicks run the call once', async () => {
    const { page, card, account, waitUntilIdle, replies, results } = await requestApproval(
      testDemo,
      'Send $50 to Alice and $20 to Bob',
      { mode },
    )
    const ids = await account.pendingApprovals()
    await page.reload()
    await card('Alice').waitFor()
    await takeScreenshot(page, `approval-reloaded-${mode}`)
    await card('Alice').getByRole('button', { name: 'Approve' }).dblclick()
    await waitForOutcome(card('Alice'))
    await waitForChangedPreview(card('Bob'))
    // Both clicks happen before the page renders the first decision.
    await card('Bob')
      .getByRole('button', { name: 'Approve' })
      .evaluate((button: HTMLElement) => {
        button.click()
        button.click()
      })
    await waitForOutcome(card('Bob'))
    await waitUntilIdle()
    expect(await account.payments()).toEqual(['Alice 50', 'Bob 20'])
    for (const id of ids) expect(await account.history(id)).toEqual(RAN_ONCE)
    expect(results()).toHaveLength(2)
    expect(await replies.count()).toBe(1)
    expect(await replies.locator('.markdown').last().textContent()).toContain('I sent')
    expect(await page.getByRole('alert').count()).toBe(0)
    await takeScreenshot(page, `approval-twice-${mode}`)
  })
})

describe.each(testModes('live'))('%s', (mode) => {
  // In `npm test`, RE7 covers this without a browser.
  longTest(
    '[DM34] the card of a payment that nobody decides shows that it has expired, and the payment does not run',
    async () => {
      await using shortDeadlineDemo = await openTestDemo({
        variables: { DEMO_APPROVAL_DEADLINE_MS: '4000' },
      })
      const { page, card, account, id, waitUntilIdle, replies, results } = await requestApproval(
        shortDeadlineDemo,
        'Send $50 to Alice',
        { mode },
      )
      const payment = card('Alice')
      await payment
        .getByRole('timer')
        .getByText(/^0:0[0-4]$/)
        .waitFor()
      await payment.getByText('Expired: nobody decided in time. Nothing was done.').waitFor()
      await replies.locator('.markdown').last().waitFor()
      await waitUntilIdle()
      expect(await payment.getByRole('button').count()).toBe(0)
      expect(await account.history(id)).toEqual(['requested', 'expired'])
      expect(await account.payments()).toEqual([])
      expect(results()).toMatchObject([{ status: 'expired' }])
      await takeScreenshot(page, `approval-expired-${mode}`)
      await shortDeadlineDemo.closePages()
    },
  )
})

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { modesOf } from './support/modes.ts'
import { ask, decide, ending, RAN, untilChanged } from './support/approvals.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

describe.each(modesOf('live'))('%s', (mode) => {
  test('[DM37] a pending approval is kept when the server restarts', async () => {
    const { page, card, books, id, idle, answers } = await ask(testDemo, 'Send $50 to Alice', {
      mode,
    })
    await testDemo.restart()
    await decide(card('Alice'), 'approve')
    await ending(card('Alice'))
    // Over live, the model has said before what it needs an approval for.
    const texts = () => answers.locator('.markdown').allTextContents()
    await expect.poll(async () => (await texts()).at(-1)).toContain('I sent $50.00 to Alice')
    await idle()
    expect((await texts()).join().match(/I sent/g)).toHaveLength(1)
    expect(await books.paid()).toEqual(['Alice 50'])
    expect(await books.history(id)).toEqual(RAN)
    expect(await answers.count()).toBe(1)
    await snap(page, `approval-restarted-${mode}`)
  })

  longTest('[DM38] an approval above the last message is decided in its place', async () => {
    const scene = await ask(testDemo, 'Send $50 to Alice', { mode })
    const { page, card, books, id, say, idle, answers, results } = scene
    await say('Hello')
    await answers.nth(1).locator('.markdown').waitFor()
    await idle()
    const greeting = await answers.nth(1).textContent()
    expect(await books.pending()).toEqual([id])
    await snap(page, `approval-above-${mode}`)
    await decide(card('Alice'), 'approve')
    await ending(card('Alice'))
    await idle()
    expect(await books.paid()).toEqual(['Alice 50'])
    expect(await books.history(id)).toEqual(RAN)
    expect(results()).toMatchObject([{ success: true }])
    expect(await answers.count()).toBe(2)
    expect(await answers.nth(0).textContent()).toContain('I sent $50.00 to Alice')
    expect(await answers.nth(1).textContent()).toBe(greeting)
    await snap(page, `approval-above-decided-${mode}`)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM37] [DM72] a pending approval is kept after a reload, and two quick clicks run the call once', async () => {
    const { page, card, books, idle, answers, results } = await ask(
      testDemo,
      'Send $50 to Alice and $20 to Bob',
      { mode },
    )
    const ids = await books.pending()
    await page.reload()
    await card('Alice').waitFor()
    await snap(page, `approval-reloaded-${mode}`)
    await card('Alice').getByRole('button', { name: 'Approve' }).dblclick()
    await ending(card('Alice'))
    await untilChanged(card('Bob'))
    // Faster than anybody can: both come before the page has shown the first.
    await card('Bob')
      .getByRole('button', { name: 'Approve' })
      .evaluate((button: HTMLElement) => {
        button.click()
        button.click()
      })
    await ending(card('Bob'))
    await idle()
    expect(await books.paid()).toEqual(['Alice 50', 'Bob 20'])
    for (const id of ids) expect(await books.history(id)).toEqual(RAN)
    expect(results()).toHaveLength(2)
    expect(await answers.count()).toBe(1)
    expect(await answers.locator('.markdown').last().textContent()).toContain('I sent')
    expect(await page.getByRole('alert').count()).toBe(0)
    await snap(page, `approval-twice-${mode}`)
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  // Without a page, RE7 is the same.
  longTest(
    '[DM34] the card of a payment that nobody decides shows that it has expired, and the payment does not run',
    async () => {
      await using hasty = await openTestDemo({ DEMO_APPROVAL_DEADLINE_MS: '4000' })
      const scene = await ask(hasty, 'Send $50 to Alice', { mode })
      const { page, card, books, id, idle, answers, results } = scene
      const payment = card('Alice')
      await payment
        .getByRole('timer')
        .getByText(/^0:0[0-4]$/)
        .waitFor()
      await payment.getByText('Expired: nobody decided in time. It did not run.').waitFor()
      await answers.locator('.markdown').last().waitFor()
      await idle()
      expect(await payment.getByRole('button').count()).toBe(0)
      expect(await books.history(id)).toEqual(['requested', 'expired'])
      expect(await books.paid()).toEqual([])
      expect(results()).toMatchObject([{ status: 'expired' }])
      await snap(page, `approval-expired-${mode}`)
      await hasty.leave()
    },
  )
})

import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { ask, ending, RAN, untilChanged } from './support/approvals.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

// No test here touches the mouse: what is asked is said by keyboard, and the focus is where one writes.

// What does not depend on how the page talks with the agent is tried in one mode.
describe('sse alone', () => {
  const mode = 'sse'

  test('[DM41] Tab reaches the buttons in their visual order; approve, and deny with a reason', async () => {
    const scene = await ask(testDemo, 'Send $50 to Alice', { mode })
    const { page, card, books, id, say, idle, results } = scene
    const order: string[] = []
    for (let back = 0; back < 3; back += 1) {
      await page.keyboard.press('Shift+Tab')
      order.push(await focused(page))
    }
    expect(order).toEqual(['Edit…', 'Deny…', 'Approve $50.00'])
    await snap(page, `keyboard-approve-${mode}`)
    await page.keyboard.press('Enter')
    await ending(card('Alice'))
    await idle()
    expect(await books.paid()).toEqual(['Alice 50'])
    expect(await books.history(id)).toEqual(RAN)

    await say('Send $60 to Bob')
    await card('Bob').getByRole('button', { name: 'Approve' }).waitFor()
    await idle()
    const [denied = ''] = await books.pending()
    await page.keyboard.press('Alt+A')
    await page.keyboard.press('d')
    await page.keyboard.type('add it to the next bill')
    await snap(page, `keyboard-deny-${mode}`)
    await page.keyboard.press('Escape')
    expect(await focused(page)).toBe('Deny…')
    await page.keyboard.press('Enter')
    // What was typed before is still there.
    await page.keyboard.press('Control+A')
    await page.keyboard.type('later, dear')
    await page.keyboard.press('Enter')
    await card('Bob').getByText('Denied. It did not run. Reason: later, dear').waitFor()
    await idle()
    expect(await books.paid()).toEqual(['Alice 50'])
    expect(await books.history(denied)).toEqual(['requested', 'denied'])
    expect(results()).toMatchObject([{ success: true }, { reason: 'later, dear' }])
  })
})

// What does not depend on how the page talks with the agent is tried in one mode.
describe('live alone', () => {
  const mode = 'live'

  longTest(
    '[DM41] a shortcut moves the focus to each card without deciding; approve, and edit',
    async () => {
      const words = 'Send $30 to Alice and $40 to Bob'
      const { page, card, books, idle } = await ask(testDemo, words, { mode })
      await page.keyboard.press('Alt+A')
      await page.keyboard.press('Alt+A')
      await page.keyboard.press('a')
      expect(await focused(page)).toBe('Approve $40.00')
      expect(await books.pending()).toHaveLength(2)
      await page.keyboard.press('Enter')
      await ending(card('Bob'))
      await snap(page, `keyboard-two-${mode}`)

      const [id = ''] = await books.pending()
      await untilChanged(card('Alice'))
      await page.keyboard.press('Alt+A')
      await page.keyboard.press('e')
      await card('Alice').getByLabel('Amount').waitFor()
      await page.keyboard.press('Escape')
      expect(await focused(page)).toBe('Edit…')
      await page.keyboard.press('Enter')
      await page.keyboard.press('Control+A')
      await page.keyboard.type('7')
      await page.keyboard.press('Tab')
      await page.keyboard.type('Dad')
      await snap(page, `keyboard-edit-${mode}`)
      await page.keyboard.press('Enter')
      await ending(card('Dad'))
      await idle()
      expect(await books.paid()).toEqual(['Bob 40', 'Dad 7'])
      expect(await books.history(id)).toEqual(RAN)
    },
  )

  longTest('[DM41] an approval is decided in the inbox with the keyboard', async () => {
    const { page, books, id } = await ask(testDemo, 'Send $50 to Alice', { mode })
    await page.keyboard.press('Alt+N')
    await page.getByText('What would you like to do?').waitFor()
    await page.keyboard.press('Alt+I')
    const approve = page.getByRole('listitem', { name: 'Alice' }).getByRole('button').first()
    await approve.waitFor()
    await tabTo(page, 'Approve $50.00')
    await snap(page, `keyboard-inbox-${mode}`)
    await page.keyboard.press('Enter')
    await page.getByText('No approvals are pending.').waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(books.paid).toEqual(['Alice 50'])
    await expect.poll(() => books.history(id)).toEqual(RAN)
  })
})

function focused(page: Page): Promise<string> {
  return page.evaluate(() => document.activeElement?.textContent ?? '')
}

/** Goes on by Tab until the focus is on something of that name, as one who sees it does. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let stops = 0; stops < 30; stops += 1) {
    if ((await focused(page)) === name) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not lead to “${name}”.`)
}

import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import {
  requestApproval,
  waitForOutcome,
  RAN_ONCE,
  waitForChangedPreview,
} from './support/approvals.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

// No test here uses the mouse. The message is sent with the keyboard, so the input has the focus.

// The mode does not affect keyboard handling, so each test runs in one mode.
describe('sse', () => {
  const mode = 'sse'

  test('[DM41] Tab reaches the buttons in their visual order; approve, and deny with a reason', async () => {
    const { page, card, account, id, send, waitUntilIdle, results } = await requestApproval(
      testDemo,
      'Send $50 to Alice',
      { mode },
    )
    const order: string[] = []
    for (let back = 0; back < 3; back += 1) {
      await page.keyboard.press('Shift+Tab')
      order.push(await readFocusedText(page))
    }
    expect(order).toEqual(['Edit…', 'Deny…', 'Approve $50.00'])
    await takeScreenshot(page, `keyboard-approve-${mode}`)
    await page.keyboard.press('Enter')
    await waitForOutcome(card('Alice'))
    await waitUntilIdle()
    expect(await account.payments()).toEqual(['Alice 50'])
    expect(await account.history(id)).toEqual(RAN_ONCE)

    await send('Send $60 to Bob')
    await card('Bob').getByRole('button', { name: 'Approve' }).waitFor()
    await waitUntilIdle()
    const [denied = ''] = await account.pendingApprovals()
    await page.keyboard.press('Alt+A')
    await page.keyboard.press('d')
    await page.keyboard.type('add it to the next bill')
    await takeScreenshot(page, `keyboard-deny-${mode}`)
    await page.keyboard.press('Escape')
    expect(await readFocusedText(page)).toBe('Deny…')
    await page.keyboard.press('Enter')
    // The text that was typed before is kept.
    await page.keyboard.press('Control+A')
    await page.keyboard.type('later, dear')
    await page.keyboard.press('Enter')
    await card('Bob').getByText('Denied. Nothing was done. Reason: later, dear').waitFor()
    await waitUntilIdle()
    expect(await account.payments()).toEqual(['Alice 50'])
    expect(await account.history(denied)).toEqual(['requested', 'denied'])
    expect(results()).toMatchObject([{ success: true }, { reason: 'later, dear' }])
  })
})

describe('live', () => {
  const mode = 'live'

  longTest(
    '[DM41] a shortcut moves the focus to each card without deciding; approve, and edit',
    async () => {
      const text = 'Send $30 to Alice and $40 to Bob'
      const { page, card, account, waitUntilIdle } = await requestApproval(testDemo, text, {
        mode,
      })
      await page.keyboard.press('Alt+A')
      await page.keyboard.press('Alt+A')
      await page.keyboard.press('a')
      expect(await readFocusedText(page)).toBe('Approve $40.00')
      expect(await account.pendingApprovals()).toHaveLength(2)
      await page.keyboard.press('Enter')
      await waitForOutcome(card('Bob'))
      await takeScreenshot(page, `keyboard-two-${mode}`)

      const [id = ''] = await account.pendingApprovals()
      await waitForChangedPreview(card('Alice'))
      await page.keyboard.press('Alt+A')
      await page.keyboard.press('e')
      await card('Alice').getByLabel('Amount').waitFor()
      await page.keyboard.press('Escape')
      expect(await readFocusedText(page)).toBe('Edit…')
      await page.keyboard.press('Enter')
      await page.keyboard.press('Control+A')
      await page.keyboard.type('7')
      await page.keyboard.press('Tab')
      await page.keyboard.type('Dad')
      // Until the server has said what the edited call would do, it cannot be approved (RE1101).
      await card('Dad').getByText('$953.00').waitFor()
      await takeScreenshot(page, `keyboard-edit-${mode}`)
      await page.keyboard.press('Enter')
      await waitForOutcome(card('Dad'))
      await waitUntilIdle()
      expect(await account.payments()).toEqual(['Bob 40', 'Dad 7'])
      expect(await account.history(id)).toEqual(RAN_ONCE)
    },
  )

  longTest('[DM41] an approval is decided in the inbox with the keyboard', async () => {
    const { page, account, id } = await requestApproval(testDemo, 'Send $50 to Alice', { mode })
    await page.keyboard.press('Alt+N')
    await page.getByText('What would you like to do?').waitFor()
    await page.keyboard.press('Alt+I')
    const approve = page.getByRole('listitem', { name: 'Alice' }).getByRole('button').first()
    await approve.waitFor()
    await tabTo(page, 'Approve $50.00')
    await takeScreenshot(page, `keyboard-inbox-${mode}`)
    await page.keyboard.press('Enter')
    await page.getByText('No approvals are pending.').waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(account.payments).toEqual(['Alice 50'])
    await expect.poll(() => account.history(id)).toEqual(RAN_ONCE)
  })
})

function readFocusedText(page: Page): Promise<string> {
  return page.evaluate(() => document.activeElement?.textContent ?? '')
}

/** Presses Tab until the element with this text has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 30; presses += 1) {
    if ((await readFocusedText(page)) === name) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not reach “${name}”.`)
}

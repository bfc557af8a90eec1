import { expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { requestApproval, decide, waitForOutcome } from './support/approvals.ts'
import { testModes } from './support/modes.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

longTest(
  '[DM460] a payment of an agent that is used as a tool shows its path, and runs once',
  async () => {
    const text = 'Ask the accountant to send $20 to Alice'
    const { page, card, replies, account, waitUntilIdle } = await requestApproval(testDemo, text)
    await card('Alice').getByText('Accountant › Payment').waitFor()
    await takeScreenshot(page, 'nested-approval')
    await decide(card('Alice'), 'approve')
    await waitForOutcome(card('Alice'))
    await replies.getByText('I sent $20.00 to Alice').filter({ visible: true }).first().waitFor()
    await waitUntilIdle()
    expect(await account.payments()).toHaveLength(1)
    await page.reload()
    await waitForOutcome(card('Alice'))
  },
)

test.each(testModes('live'))(
  '[DM461] the agent asks with a form, and continues with the answer (%s)',
  async (mode) => {
    const { page, card, replies, waitUntilIdle } = await requestApproval(
      testDemo,
      'Reserve a table for me',
      { mode },
    )
    const question = card('Which table would you like?')
    await question.getByLabel('Guests').fill('40')
    await question.getByLabel('Date').fill('2026-12-24')
    await question.getByLabel('Seating').selectOption('Outside')
    await question.getByRole('button', { name: 'Send answer' }).click()
    await question.getByText(/12/).first().waitFor()
    await takeScreenshot(page, 'question')
    await question.getByLabel('Guests').fill('4')
    await question.getByRole('button', { name: 'Send answer' }).click()
    await replies.getByText('I noted a table for 4 on 2026-12-24, Outside.').waitFor()
    await waitUntilIdle()
    expect(await question.getAttribute('data-ending')).toBe('approved')
  },
)

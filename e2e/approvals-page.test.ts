import { expect, test } from 'vitest'

import { requestApproval, decide, waitForOutcome } from './support/approvals.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

test('[DM450] the approvals page lists pending and decided approvals, and keeps its filter in the URL', async () => {
  const { page, card } = await requestApproval(testDemo, 'Send $50 to Alice', { mode: 'sse' })
  await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
  await page.getByRole('link', { name: 'All approvals and history' }).click()
  const pending = page.locator('.approvals-page').getByRole('region', { name: 'Pending approvals' })
  const item = pending.getByRole('listitem', { name: /Alice/ })
  // The only approval is open, and its line has the focus.
  await item.getByRole('button', { expanded: true }).and(page.locator(':focus')).waitFor()
  await decide(item, 'approve')
  await pending.getByText('No approvals are pending.').waitFor()
  const history = page.getByRole('region', { name: 'Approval history' })
  const line = history.getByRole('button', { name: /\$50\.00 to Alice/ })
  await line.waitFor()
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Approvals')
  await page.getByLabel('State').selectOption('Denied')
  await history.getByText('No approvals match.').waitFor()
  expect(new URL(page.url()).searchParams.get('state')).toBe('denied')
  await page.reload()
  await history.getByText('No approvals match.').waitFor()
  await page.goBack()
  await line.focus()
  await page.keyboard.press('Enter')
  await history.getByText('Requested by').waitFor()
  await takeScreenshot(page, 'approvals-page')
  // The chat is still open behind the page.
  await page.getByRole('button', { name: 'Back to the chat' }).click()
  await waitForOutcome(card('Alice'))
})

import type { Page } from 'playwright-core'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { requestApproval, decide, waitForOutcome } from './support/approvals.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

/** Clicks a button that opens a window, and returns the page in it. */
async function openWindow(page: Page, name: string): Promise<Page> {
  const opening = page.waitForEvent('popup')
  await page.getByRole('button', { name }).last().click()
  return opening
}

test('[DM520] a person signs in, the tool runs once, and they can sign out and sign in with another account', async () => {
  const { page, replies, send, waitUntilIdle, card, results } = await requestApproval(
    testDemo,
    'Show my calendar',
  )
  await card('Sign-in needed: Demo Calendar').waitFor()
  await takeScreenshot(page, 'sign-in')
  const declined = await openWindow(page, 'Sign in to Demo Calendar')
  await declined.getByText('This page belongs to the demo.').waitFor()
  await takeScreenshot(declined, 'sign-in-provider')
  await declined.getByRole('button', { name: 'Cancel' }).click()
  await declined.getByText('You did not sign in.').waitFor()
  await declined.close()

  // The question is still open.
  const provider = await openWindow(page, 'Sign in to Demo Calendar')
  const closed = provider.waitForEvent('close')
  await provider.getByRole('button', { name: 'Sign in as Hana' }).click()
  await closed
  await replies.getByText('Today in Hana’s calendar: 09:30 Team meeting').waitFor()
  await waitUntilIdle()
  expect(results().filter((result) => 'events' in result)).toHaveLength(1)
  await page.reload()
  await card('Sign-in: Demo Calendar').getByText('Signed in (Demo Calendar)').waitFor()
  await takeScreenshot(page, 'signed-in')

  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByText('Demo Calendar as hana@example.com').waitFor()
  await takeScreenshot(page, 'sign-out')
  await page.getByRole('button', { name: 'Sign out of Demo Calendar' }).click()
  await page.getByText('Signed out of Demo Calendar. The access is revoked.').waitFor()
  await page.keyboard.press('Escape')

  await send('Show my calendar')
  const other = await openWindow(page, 'Use another account')
  await other.getByRole('button', { name: 'Sign in as Ben' }).click()
  await replies.getByText('Today in Ben’s calendar').waitFor()
  await waitUntilIdle()
})

longTest(
  '[DM522] a read-only tool of an MCP server runs, and one that deletes needs approval',
  async () => {
    const file = join(testDemo.dataDir, 'notes.json')
    const { page, replies, card, waitUntilIdle } = await requestApproval(
      testDemo,
      'Delete my old notes',
    )
    const deletion = card('Delete 2 notes')
    await deletion.getByText('Notebook › Delete notes').waitFor()
    await deletion.getByText('Deleted notes cannot be restored.').waitFor()
    await takeScreenshot(page, 'mcp')
    expect(existsSync(file)).toBe(false)
    await decide(deletion, 'approve')
    await waitForOutcome(card('Deleted 2 notes'))
    await replies.getByText('I deleted 2 notes.').filter({ visible: true }).first().waitFor()
    await waitUntilIdle()
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject([
      { title: 'Questions for the dentist' },
    ])
    await takeScreenshot(page, 'mcp-done')
  },
)

longTest(
  '[DM650] an MCP server asks with a form during a call, and continues with the answer',
  async () => {
    const file = join(testDemo.dataDir, 'notes.json')
    const { page, replies, card, waitUntilIdle } = await requestApproval(
      testDemo,
      'Write a note for me',
    )
    const question = card('Question from Notebook: What should the note say?')
    await replies.getByText('Waiting for an answer: What should the note say?').waitFor()
    await takeScreenshot(page, 'mcp-question')
    await question.getByLabel('Note').focus()
    await page.keyboard.type('Buy tea')
    await page.keyboard.press('Tab')
    await page.keyboard.type('Sho')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    await page.keyboard.press('Enter')
    await replies
      .getByText('I saved the note “Buy tea”.')
      .filter({ visible: true })
      .first()
      .waitFor()
    await waitUntilIdle()
    expect(await question.getAttribute('data-ending')).toBe('approved')
    const note = { title: 'Buy tea', kind: 'shopping', important: true }
    expect(JSON.parse(readFileSync(file, 'utf8'))).toContainEqual(expect.objectContaining(note))
    await takeScreenshot(page, 'mcp-answered')
  },
)

test('[DM523] a workflow agent waits in its second step, and the page shows the state of each step', async () => {
  const { page, replies, card, waitUntilIdle } = await requestApproval(
    testDemo,
    'Plan a weekend in Kyoto',
  )
  const steps = page.getByRole('figure', { name: 'Steps of the weekend trip' })
  const read = (): Promise<string[]> => steps.getByRole('listitem').allTextContents()
  await expect
    .poll(read)
    .toEqual(['Plan Done', 'Book Waiting for a response', 'Confirm Not started'])
  const booking = card('Book 2 nights in Kyoto for $240.00')
  await booking.getByText('The next step starts after your decision.').waitFor()
  await takeScreenshot(page, 'steps')
  await decide(booking, 'approve')
  await replies.getByText('Your weekend in Kyoto is planned and booked.').waitFor()
  await waitUntilIdle()
  const done = ['Plan Done', 'Book Done', 'Confirm Done']
  await expect.poll(read).toEqual(done)
  await page.reload()
  await expect.poll(read).toEqual(done)
  await waitForOutcome(card('Booked 2 nights in Kyoto'))
  await takeScreenshot(page, 'steps-done')
})

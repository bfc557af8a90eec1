import type { Locator } from 'playwright-core'
import { expect } from 'vitest'

import { readAccount } from './account.ts'
import { chatPage } from './chat-page.ts'
import type { TestDemo } from './test-demo.ts'
import { watchToolResults } from './tool-results.ts'

/** The audit entries of a call that was approved and ran once. */
export const RAN_ONCE = ['requested', 'approved', 'started', 'succeeded']

export type Choice = 'approve' | 'deny'

/** The text of a card after the decision. */
const OUTCOMES: Readonly<Record<Choice, string>> = {
  approve: 'Approved.',
  deny: 'Denied. Nothing was done.',
}

/** Sends a message that leads to an approval, and waits until the approval is pending. */
export async function requestApproval(
  testDemo: TestDemo,
  text: string,
  options: Parameters<TestDemo['openPage']>[0] = {},
) {
  const results = watchToolResults(testDemo)
  const page = await testDemo.openPage(options)
  const chat = chatPage(page)
  await chat.send(text)
  const first = page.locator('.adk-approval').first()
  await first.waitFor()
  await chat.waitUntilIdle()
  const account = readAccount(testDemo, page)
  const id = (await first.getAttribute('data-approval')) ?? ''
  return { page, ...chat, card: chat.tool, account, id, results }
}

/** Presses a button. */
type Press = (button: Locator, options?: { readonly timeout: number }) => Promise<void>

const click: Press = (button, options) => button.click(options)

export async function decide(card: Locator, choice: Choice, press = click): Promise<void> {
  if (choice === 'approve') return approve(card, press)
  await press(card.getByRole('button', { name: 'Deny…' }))
  await press(card.getByRole('button', { name: 'Deny', exact: true }))
}

/** The card ignores a click within half a second after its preview has changed, and a second click within half a second after the first. */
const CLICK_DELAY_MS = 600

/** Clicks Approve until the card accepts it. After a change of the preview another click is necessary, and for a high risk two clicks are. */
async function approve(card: Locator, press: Press): Promise<void> {
  const button = card.getByRole('button', { name: /approve|press again/i })
  // A count does not wait for the card.
  await button.waitFor()
  const needsOneClick = (await card.locator('.adk-preview, .adk-hold').count()) === 0
  await press(button)
  if (needsOneClick) return
  const isAccepted = async (): Promise<boolean> => {
    if ((await card.count()) === 0) return true
    if (await button.isVisible()) {
      await press(button, { timeout: 1_000 }).catch(() => undefined)
      return false
    }
    const hasVoted = (await card.getByText('You approved this').count()) > 0
    // An item of the inbox has no state: it disappears.
    const state =
      (await card.getAttribute('data-state', { timeout: 1_000 })) ?? 'approval-responded'
    return hasVoted || !state.startsWith('approval-')
  }
  await expect
    .poll(() => isAccepted().catch(() => false), { interval: CLICK_DELAY_MS, timeout: 120_000 })
    .toBe(true)
}

/** Waits until a card shows a changed preview and accepts clicks again. */
export async function waitForChangedPreview(card: Locator): Promise<void> {
  await card.locator('[data-changed]').first().waitFor({ state: 'attached' })
  await card.page().waitForTimeout(CLICK_DELAY_MS)
}

/** Waits until a card shows the outcome of a decision. */
export function waitForOutcome(card: Locator, choice: Choice = 'approve'): Promise<void> {
  return card.getByText(OUTCOMES[choice], { exact: true }).waitFor()
}

/** Returns the rows of the table of arguments in a card. */
export async function readArguments(card: Locator): Promise<string[][]> {
  const rows = await card.getByRole('table').getByRole('row').all()
  return Promise.all(rows.map((row) => row.locator('th, td').allTextContents()))
}

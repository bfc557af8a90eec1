import type { Locator } from 'playwright-core'
import { expect } from 'vitest'

import { readPage } from './chat-page.ts'
import { listenToResults } from './model-told.ts'
import { readBooks } from './payments.ts'
import type { TestDemo } from './test-demo.ts'

/** The audit record of a call that was approved and ran once. */
export const RAN = ['requested', 'approved', 'started', 'succeeded']

export type Choice = 'approve' | 'deny'

/** What a card says in the end. */
const ENDINGS: Readonly<Record<Choice, string>> = {
  approve: 'Approved.',
  deny: 'Denied. It did not run.',
}

/** Says something that leads to an approval, and waits until it is asked. */
export async function ask(
  testDemo: TestDemo,
  words: string,
  visit: Parameters<TestDemo['visit']>[0] = {},
) {
  const results = listenToResults(testDemo)
  const page = await testDemo.visit(visit)
  const reading = readPage(page)
  await reading.say(words)
  const first = page.locator('.adk-approval').first()
  await first.waitFor()
  await reading.idle()
  const books = readBooks(testDemo, page)
  const id = (await first.getAttribute('data-approval')) ?? ''
  return { page, ...reading, card: reading.tool, books, id, results }
}

export async function decide(card: Locator, choice: Choice): Promise<void> {
  if (choice === 'approve') return approve(card)
  await card.getByRole('button', { name: 'Deny…' }).click()
  await card.getByRole('button', { name: 'Deny', exact: true }).click()
}

/** A click counts half a second after the preview has changed, and a second press half a second after the first. */
const SETTLED_MS = 600

/** Presses Approve until the card takes it: a preview that has changed asks again, and a high risk needs two presses. */
async function approve(card: Locator): Promise<void> {
  const button = card.getByRole('button', { name: /approve/i })
  const isAskedOnce = (await card.locator('.adk-preview, .adk-hold').count()) === 0
  await button.click()
  if (isAskedOnce) return
  const isTaken = async (): Promise<boolean> => {
    if ((await card.count()) === 0) return true
    if (await button.isVisible()) {
      await button.click({ timeout: 1_000 }).catch(() => undefined)
      return false
    }
    const hasVoted = (await card.getByText('You approved this').count()) > 0
    // An item of the inbox has no state: it disappears.
    const state =
      (await card.getAttribute('data-state', { timeout: 1_000 })) ?? 'approval-responded'
    return hasVoted || !state.startsWith('approval-')
  }
  await expect
    .poll(() => isTaken().catch(() => false), { interval: SETTLED_MS, timeout: 120_000 })
    .toBe(true)
}

/** Waits until a card shows a preview that has changed, and takes a decision about it. */
export async function untilChanged(card: Locator): Promise<void> {
  await card.locator('[data-changed]').first().waitFor({ state: 'attached' })
  await card.page().waitForTimeout(SETTLED_MS)
}

/** Waits until a card says what came of it. */
export function ending(card: Locator, choice: Choice = 'approve'): Promise<void> {
  return card.getByText(ENDINGS[choice], { exact: true }).waitFor()
}

/** The arguments that a card shows, line by line. */
export async function readArguments(card: Locator): Promise<string[][]> {
  const rows = await card.getByRole('table').getByRole('row').all()
  return Promise.all(rows.map((row) => row.locator('th, td').allTextContents()))
}

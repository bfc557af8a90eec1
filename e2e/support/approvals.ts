import type { Locator } from 'playwright-core'

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
  if (choice === 'approve') {
    await card.getByRole('button', { name: 'Approve' }).click()
    return
  }
  await card.getByRole('button', { name: 'Deny…' }).click()
  await card.getByRole('button', { name: 'Deny', exact: true }).click()
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

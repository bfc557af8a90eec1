import type { Locator, Page } from 'playwright-core'

import { readPage } from './chat-page.ts'

/** What stands around the conversation, in a reader's words. */
export function readShell(page: Page) {
  const links = page.locator('.chat-link')
  return {
    /** A chat of the list, by words of its name. */
    chat: (words: string): Locator => links.filter({ hasText: words }),
    titles: (): Promise<string[]> => links.locator('.chat-title').allTextContents(),
    options: (words: string): Locator =>
      page
        .getByRole('button', { name: `Options for “` })
        .and(page.getByRole('button', { name: words })),
    newChat: page.getByRole('button', { name: 'New chat' }),
    chooser: page.locator('input[type=file]'),
    previews: page.getByRole('list', { name: /Pictures to send|送信する画像/ }),
  }
}

/** Says something in the chat that is open, and waits for the answer. */
export async function converse(page: Page, words: string): Promise<void> {
  const { say, idle, answers } = readPage(page)
  await say(words)
  await answers.last().waitFor()
  await idle()
}

export function isFocused(element: Locator): Promise<boolean> {
  return element.evaluate((found) => found === document.activeElement)
}

/** Chooses how to talk with the model, as a person does. */
export async function chooseMode(page: Page, name: string): Promise<void> {
  const modes = page.getByRole('radiogroup', { name: 'Mode', exact: true })
  await modes.getByRole('radio', { name }).click()
  // Until the chat is read for that mode, nothing in it can be used.
  await page.locator('.conversation:not([inert])').waitFor()
}

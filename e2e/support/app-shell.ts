import type { Locator, Page } from 'playwright-core'

import { chatPage } from './chat-page.ts'

/** Returns the locators of the parts around the conversation. */
export function appShell(page: Page) {
  const links = page.locator('.chat-link')
  return {
    /** Returns a chat of the list, by a part of its title. */
    chat: (title: string): Locator => links.filter({ hasText: title }),
    titles: (): Promise<string[]> => links.locator('.chat-title').allTextContents(),
    options: (title: string): Locator =>
      page
        .getByRole('button', { name: `Options for “` })
        .and(page.getByRole('button', { name: title })),
    newChat: page.getByRole('button', { name: 'New chat' }),
    chooser: page.locator('input[type=file]'),
    previews: page.getByRole('list', { name: /Pictures to send|送信する画像/ }),
  }
}

/** Sends a message in the open chat, and waits for the reply. */
export async function sendAndWait(page: Page, text: string): Promise<void> {
  const { send, waitUntilIdle, replies } = chatPage(page)
  await send(text)
  await replies.last().waitFor()
  await waitUntilIdle()
}

export function isFocused(element: Locator): Promise<boolean> {
  return element.evaluate((found) => found === document.activeElement)
}

/** Chooses a mode with the mouse. */
export async function chooseMode(page: Page, name: string): Promise<void> {
  const modes = page.getByRole('radiogroup', { name: 'Mode', exact: true })
  await modes.getByRole('radio', { name }).click()
  // The conversation is inert until the chat is loaded in that mode.
  await page.locator('.conversation:not([inert])').waitFor()
}

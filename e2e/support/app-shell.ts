import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'

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

/** Returns the places that say how many approvals wait for the person: the title of the page, the inbox, and the list of chats. */
async function readCounts(page: Page) {
  const inbox = await page.getByRole('button', { name: /^Approvals: / }).getAttribute('aria-label')
  const chats = await page.locator('.chat-link .badge [aria-hidden]').allTextContents()
  return {
    title: /^\((\d+\+?)\)/.exec(await page.title())?.[1] ?? '0',
    inbox: /\d+/.exec(inbox ?? '')?.[0],
    chats: String(chats.reduce((sum, count) => sum + Number(count), 0)),
  }
}

/** Waits until all places say that this number of approvals waits for the person. */
export function expectCounts(page: Page, count: number): Promise<void> {
  const all = String(count)
  return expect.poll(() => readCounts(page)).toEqual({ title: all, inbox: all, chats: all })
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

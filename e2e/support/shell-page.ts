import type { Locator, Page } from 'playwright-core'

/** What stands around the conversation, in a reader's words. */
export function readShell(page: Page) {
  const links = page.locator('.chat-link')
  return {
    /** A chat of the list, by words of its name. */
    chat: (words: string): Locator => links.filter({ hasText: words }),
    titles: (): Promise<string[]> => links.locator('.chat-title').allTextContents(),
    options: (words: string): Locator =>
      page
        .getByRole('button', { name: `Options of “` })
        .and(page.getByRole('button', { name: words })),
    newChat: page.getByRole('button', { name: 'New chat' }),
    chooser: page.locator('input[type=file]'),
    previews: page.getByRole('list', { name: /Pictures to send|送信する画像/ }),
  }
}

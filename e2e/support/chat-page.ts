import type { Locator, Page } from 'playwright-core'

const REPLY = '.adk-message[data-role=assistant]'

/** Returns the locators of a chat, and functions that use it. */
export function chatPage(page: Page) {
  const log = page.getByRole('log')
  const input = page.getByRole('textbox', { name: /^(Message|メッセージ)$/ })
  return {
    log,
    input,
    replies: log.locator(REPLY),
    /** Returns a reply by its index, from 0. */
    reply: (index = 0): Locator => log.locator(REPLY).nth(index),
    /** Returns the cards of a tool, by the name of its function or by a part of the call's description. */
    tool: (name: string): Locator =>
      log.locator(`.adk-tool:is([data-tool="${name}"], [aria-label*="${name}"])`),
    stop: page.getByRole('button', { name: /^(Stop|停止)$/ }),
    alert: page.getByRole('alert'),
    /** The error of the chat, with its button. */
    problem: page.locator('.adk-problem'),
    /** Sends a message with the keyboard. */
    send: async (text: string) => {
      await input.fill(text)
      await input.press('Enter')
    },
    /** Resolves when no reply is being streamed. */
    waitUntilIdle: () => log.and(page.locator('[data-busy=false]')).waitFor({ state: 'attached' }),
  }
}

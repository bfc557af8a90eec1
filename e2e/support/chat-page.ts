import type { Locator, Page } from 'playwright-core'

const ANSWER = '.adk-message[data-role=assistant]'

/** The page in a reader's words. */
export function readPage(page: Page) {
  const log = page.getByRole('log')
  const input = page.getByRole('textbox', { name: /^(Message|メッセージ)$/ })
  return {
    log,
    input,
    answers: log.locator(ANSWER),
    /** The n-th answer, from 0. */
    answer: (index = 0): Locator => log.locator(ANSWER).nth(index),
    /** The cards of a tool, by the name of its function or by words of what it does. */
    tool: (name: string): Locator =>
      log.locator(`.adk-tool:is([data-tool="${name}"], [aria-label*="${name}"])`),
    stop: page.getByRole('button', { name: /^(Stop|停止)$/ }),
    alert: page.getByRole('alert'),
    /** What is wrong with the chat, and what to do about it. */
    problem: page.locator('.adk-problem'),
    /** Sends a message by keyboard. */
    say: async (text: string) => {
      await input.fill(text)
      await input.press('Enter')
    },
    /** Resolves when no answer is being written any more. */
    idle: () => log.and(page.locator('[aria-busy=false]')).waitFor({ state: 'attached' }),
  }
}

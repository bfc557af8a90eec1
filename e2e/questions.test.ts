import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { ask, decide, ending } from './support/approvals.ts'
import { modesOf } from './support/modes.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

longTest(
  '[DM460] a payment of an agent that is used as a tool shows its path, and runs once',
  async () => {
    const words = 'Ask the accountant to send $20 to Alice'
    const { page, card, answers, books, idle } = await ask(testDemo, words)
    await card('Alice').getByText('Accountant › Payment').waitFor()
    await snap(page, 'nested-approval')
    await decide(card('Alice'), 'approve')
    await ending(card('Alice'))
    await answers.getByText('I sent $20.00 to Alice').filter({ visible: true }).first().waitFor()
    await idle()
    expect(await books.paid()).toHaveLength(1)
    await page.reload()
    await ending(card('Alice'))
  },
)

test.each(modesOf('live'))(
  '[DM461] the agent asks with a form, and continues with the answer (%s)',
  async (mode) => {
    const { page, card, answers, idle } = await ask(testDemo, 'Reserve a table for me', { mode })
    const question = card('Which table would you like?')
    await question.getByLabel('Guests').fill('40')
    await question.getByLabel('Date').fill('2026-12-24')
    await question.getByLabel('Seating').selectOption('Outside')
    await question.getByRole('button', { name: 'Send answer' }).click()
    await question.getByText(/12/).first().waitFor()
    await snap(page, 'question')
    await question.getByLabel('Guests').fill('4')
    await question.getByRole('button', { name: 'Send answer' }).click()
    await answers.getByText('I noted a table for 4 on 2026-12-24, Outside.').waitFor()
    await idle()
    expect(await question.getAttribute('data-ending')).toBe('approved')
  },
)

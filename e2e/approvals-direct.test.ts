import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { ask, decide, ending } from './support/approvals.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

const mode = 'direct'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

test('[DM75] a pending approval of the AI SDK is kept after a reload, and the approved payment is made once', async () => {
  const { page, card, books, idle, answers, results } = await ask(testDemo, 'Send $50 to Alice', {
    mode,
  })
  expect(await books.pending()).toEqual([])
  expect(await card('Alice').getByRole('button', { name: 'Edit…' }).count()).toBe(0)
  await page.reload()
  await card('Alice').waitFor()
  await snap(page, 'approval-asked-direct')
  await card('Alice').getByRole('button', { name: 'Approve' }).dblclick()
  await ending(card('Alice'))
  await idle()
  expect(await books.paid()).toEqual(['Alice 50'])
  expect(results()).toMatchObject([{ content: { success: true, amount: 50 } }])
  expect(await answers.count()).toBe(1)
  expect(await answers.locator('.markdown').last().textContent()).toContain(
    'I sent $50.00 to Alice',
  )
  await snap(page, 'approval-approved-direct')

  await page.reload()
  await ending(card('Alice'))
  expect(await books.paid()).toEqual(['Alice 50'])
})

longTest(
  '[DM75] of two payments one is approved and one denied, and the model receives the reason',
  async () => {
    const words = 'Send $30 to Alice and $40 to Bob'
    const { page, card, books, idle, answers, results } = await ask(testDemo, words, { mode })
    await card('Bob').getByRole('button', { name: 'Deny…' }).click()
    await card('Bob').getByLabel('Reason (optional)').fill('not this month')
    await card('Bob').getByRole('button', { name: 'Deny', exact: true }).click()
    expect(await books.paid()).toEqual([])
    await decide(card('Alice'), 'approve')
    await ending(card('Alice'), 'approve')
    await card('Bob').getByText('Denied. It did not run. Reason: not this month').waitFor()
    await answers.locator('.markdown').last().waitFor()
    await idle()
    const answer = await answers.locator('.markdown').last().textContent()
    expect(answer).toContain('was not carried out')
    expect(answer).toContain('not this month')
    expect(await books.paid()).toEqual(['Alice 30'])
    expect(results()).toHaveLength(2)
    await snap(page, 'approvals-two-direct')
  },
)

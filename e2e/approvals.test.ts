import type { Locator } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { readPage } from './support/chat-page.ts'
import { readBooks } from './support/payments.ts'
import { openWorld, type World } from './support/world.ts'

const API_KEY = 'a-key-of-sixteen-characters'
const RAN = ['requested', 'approved', 'started', 'succeeded']

let world: World
beforeAll(async () => {
  world = await openWorld({ API_KEY })
})
afterAll(() => world[Symbol.asyncDispose]())
afterEach(() => world.leave())

test('[DM34] a payment waits in plain sight and runs once it is approved', async () => {
  const { page, card, books, idle, answers } = await ask('花子さんに50ドル送金してください', {
    locale: 'ja-JP',
  })
  const payment = card('花子')
  expect(await payment.locator('.adk-deed').textContent()).toMatch(/花子 に .*50.* を送金/)
  expect(await payment.locator('.adk-hint').textContent()).toContain('残高は 1000 USD')
  expect(await readTable(payment)).toEqual([
    ['金額', '50'],
    ['送金先', '花子'],
    ['通貨', 'USD'],
  ])
  expect(await payment.getByRole('timer').textContent()).toMatch(/^9:\d\d$|^10:00$/)
  expect(await books.balance()).toBe(1000)
  const [id = ''] = await books.pending()

  await payment.getByRole('button', { name: '承認' }).click()
  await payment.getByText('承認しました。', { exact: true }).waitFor()
  await idle()
  expect(await books.balance()).toBe(950)
  expect(await books.history(id)).toEqual(RAN)
  expect(await answers.count()).toBe(1)
  expect(await answers.locator('.markdown').last().textContent()).toContain('花子')

  const shown = await answers.textContent()
  await page.reload()
  await payment.getByText('承認しました。', { exact: true }).waitFor()
  expect(await answers.textContent()).toBe(shown)
})

test('[DM34] a payment that nobody decides expires before their eyes, and does not run', async () => {
  await using hasty = await openWorld({ DEMO_APPROVAL_DEADLINE_MS: '2500' })
  const { card, books, idle, answers } = await ask('Send $50 to Alice', {}, hasty)
  const payment = card('Alice')
  const [id = ''] = await books.pending()
  await payment
    .getByRole('timer')
    .getByText(/^0:0[012]$/)
    .waitFor()
  await payment.getByText('Expired: nobody decided in time. It did not run.').waitFor()
  await answers.locator('.markdown').last().waitFor()
  await idle()
  expect(await payment.getByRole('button').count()).toBe(0)
  expect(await books.history(id)).toEqual(['requested', 'expired'])
  expect(await books.balance()).toBe(1000)
  await hasty.leave()
})

test('[DM34] a payment that is denied does not run, and the model is told why', async () => {
  const { card, books, idle, answers } = await ask('Send $50 to Alice')
  const payment = card('Alice')
  const [id = ''] = await books.pending()
  await payment.getByRole('button', { name: 'Deny…' }).click()
  await payment.getByLabel('Reason (optional)').fill('not this month')
  await payment.getByRole('button', { name: 'Deny', exact: true }).click()
  await payment.getByText('Denied. It did not run. Reason: not this month').waitFor()
  await idle()
  expect(await books.balance()).toBe(1000)
  expect(await books.history(id)).toEqual(['requested', 'denied'])
  expect(await answers.count()).toBe(1)
  expect(await answers.locator('.markdown').last().textContent()).toContain('not this month')
})

test('[DM35] a payment is approved as it was changed, and both are shown', async () => {
  const { page, card, books, idle } = await ask('Send $50 to Alice')
  const payment = card('Alice')
  const [id = ''] = await books.pending()
  await payment.getByRole('button', { name: 'Edit…' }).click()
  await payment.getByLabel('Amount').fill('40.5')
  await payment.getByLabel('Recipient').fill('Alicia')
  await payment.getByRole('button', { name: 'Approve with these changes' }).click()
  const edited = card('Alicia')
  await edited.getByText('Approved.', { exact: true }).waitFor()
  await idle()
  expect(await books.balance()).toBe(959.5)
  expect(await books.history(id)).toEqual(RAN)
  const table = [
    ['Argument', 'Asked', 'Approved'],
    ['Amount', '50', '40.5'],
    ['Recipient', 'Alice', 'Alicia'],
    ['Currency', 'USD', 'USD'],
  ]
  expect(await readTable(edited, 'tr')).toEqual(table)
  await page.reload()
  await edited.waitFor()
  expect(await readTable(edited, 'tr')).toEqual(table)
})

test('[DM35] a change that does not fit is refused in words, and can be made anew', async () => {
  const { card, books, idle } = await ask('Send $50 to Alice')
  const payment = card('Alice')
  await payment.getByRole('button', { name: 'Edit…' }).click()
  await payment.getByLabel('Amount').fill('')
  await payment.getByRole('button', { name: 'Approve with these changes' }).click()
  await payment.getByText('Enter a number.').waitFor()

  await payment.getByLabel('Amount').fill('20')
  await payment.getByLabel('Recipient').fill('')
  await payment.getByRole('button', { name: 'Approve with these changes' }).click()
  await payment.getByText(/do not fit the tool: recipient/).waitFor()
  expect(await books.pending()).toHaveLength(1)
  expect(await books.balance()).toBe(1000)

  expect(await payment.getByLabel('Amount').inputValue()).toBe('20')
  await payment.getByLabel('Recipient').fill('Alice')
  await payment.getByRole('button', { name: 'Approve with these changes' }).click()
  await payment.getByText('Approved.', { exact: true }).waitFor()
  await idle()
  expect(await books.balance()).toBe(980)
})

test.each([
  ['approve', 'approve', 930],
  ['approve', 'deny', 970],
  ['deny', 'approve', 960],
  ['deny', 'deny', 1000],
] as const)('[DM36] two payments at once: %s and %s', async (first, second, left) => {
  const { card, books, idle, answers } = await ask('Send $30 to Alice and $40 to Bob')
  const ids = await books.pending()
  expect(ids).toHaveLength(2)
  await decide(card('Alice'), first)
  // The first is done while the second still waits.
  await card('Alice').getByText(ENDINGS[first]).waitFor()
  expect(await books.pending()).toHaveLength(1)
  await decide(card('Bob'), second)
  await card('Bob').getByText(ENDINGS[second]).waitFor()
  await answers.locator('.markdown').last().waitFor()
  await idle()
  expect(await books.balance()).toBe(left)
  expect(await answers.count()).toBe(1)
})

test('[DM37] a reload keeps what waits', async () => {
  const { page, card, books, idle, answers } = await ask('Send $50 to Alice')
  await page.reload()
  await card('Alice').getByRole('button', { name: 'Approve' }).click()
  await card('Alice').getByText('Approved.', { exact: true }).waitFor()
  await idle()
  expect(await books.balance()).toBe(950)
  expect(await answers.count()).toBe(1)
})

test('[DM37] a restart of the server keeps what waits', async () => {
  const { card, books, idle, answers } = await ask('Send $50 to Alice')
  await world.restart()
  await card('Alice').getByRole('button', { name: 'Approve' }).click()
  await card('Alice').getByText('Approved.', { exact: true }).waitFor()
  await idle()
  expect(await books.balance()).toBe(950)
  expect(await answers.count()).toBe(1)
})

test('[DM38] a page that only looks on shows what another tab decided', async () => {
  const { page, card, books, answers } = await ask('Send $50 to Alice')
  const other = await page.context().newPage()
  await other.goto(page.url())
  await readPage(other).tool('Alice').getByRole('button', { name: 'Approve' }).click()
  await card('Alice').getByText('Approved.', { exact: true }).waitFor()
  await expect
    .poll(() => answers.locator('.markdown').last().textContent(), { timeout: 10_000 })
    .toContain('Alice')
  expect(await answers.count()).toBe(1)
  expect(await books.balance()).toBe(950)
})

test('[DM38] what was asked before the last message is decided in its place', async () => {
  const { page, card, books, say, idle, answers } = await ask('Send $50 to Alice')
  await say('[[say Something else.]]')
  await page.getByText('Something else.', { exact: true }).waitFor()
  await idle()
  await card('Alice').getByRole('button', { name: 'Approve' }).click()
  await card('Alice').getByText('Approved.', { exact: true }).waitFor()
  expect(await books.balance()).toBe(950)
  expect(await answers.count()).toBe(2)
  expect(await answers.nth(1).textContent()).toContain('Something else.')
})

test('[DM39] the inbox counts what waits in all chats, and decides it', async () => {
  const { page, books, card } = await ask('Send $50 to Alice')
  await page.getByRole('button', { name: 'New chat' }).click()
  await page.getByText('What would you like to do?').waitFor()
  await page.getByRole('button', { name: 'Approvals: 1 is waiting' }).click()
  const item = page.getByRole('listitem', { name: 'Send $50.00 to Alice' })
  await item.getByRole('button', { name: 'Approve' }).click()
  await page.getByText('Nothing is waiting.').waitFor()
  await expect.poll(books.balance, { timeout: 10_000 }).toBe(950)

  await page.goBack()
  await card('Alice').getByText('Approved.', { exact: true }).waitFor()
})

test('[DM39] the inbox leads to the chat', async () => {
  const { page, card } = await ask('Send $50 to Alice')
  const address = page.url()
  await page.getByRole('button', { name: 'New chat' }).click()
  await page.getByRole('button', { name: 'Approvals: 1 is waiting' }).click()
  await page.getByRole('link', { name: 'Open the chat' }).click()
  await card('Alice').waitFor()
  expect(page.url()).toBe(address)
})

test('[DM40] a large payment needs a second person, who may be a program', async () => {
  const { page, card, books } = await ask('Send $600 to Alice')
  const payment = card('Alice')
  await payment.getByText('High risk').waitFor()
  await payment.getByText('2 people have to approve this').waitFor()
  expect(await payment.getByRole('button', { name: 'Edit…' }).count()).toBe(0)
  const [id = ''] = await books.pending()
  await payment.getByRole('button', { name: 'Approve' }).click()
  await payment.getByText('1 of 2 approvals are given').waitFor()
  expect(await books.balance()).toBe(1000)

  const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' }
  const url = `${world.demo.url}/approvals/${id}`
  const body = JSON.stringify({ approved: true })
  expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200)
  await payment.getByText('Approved.', { exact: true }).waitFor()
  expect(await books.balance()).toBe(400)
  await page.reload()
  await payment.getByText('Approved.', { exact: true }).waitFor()
})

test('[DM41] a decision can be made by keyboard alone', async () => {
  const { page, card, books, idle } = await ask('Send $50 to Alice')
  const payment = card('Alice')
  const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '')
  await page.getByRole('textbox').focus()
  const order: string[] = []
  for (let back = 0; back < 3; back += 1) {
    await page.keyboard.press('Shift+Tab')
    order.push(await focused())
  }
  expect(order).toEqual(['Edit…', 'Deny…', 'Approve'])

  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await payment.getByLabel('Amount').waitFor()
  await page.keyboard.press('Escape')
  expect(await focused()).toBe('Edit…')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Control+A')
  await page.keyboard.type('7')
  await page.keyboard.press('Enter')
  await payment.getByText('Approved.', { exact: true }).waitFor()
  await idle()
  expect(await books.balance()).toBe(993)
})

const ENDINGS = { approve: 'Approved.', deny: 'Denied. It did not run.' }

async function decide(card: Locator, decision: 'approve' | 'deny'): Promise<void> {
  if (decision === 'approve') {
    await card.getByRole('button', { name: 'Approve' }).click()
    return
  }
  await card.getByRole('button', { name: 'Deny…' }).click()
  await card.getByRole('button', { name: 'Deny', exact: true }).click()
}

/** Says something that leads to an approval, and waits until it is asked. */
async function ask(words: string, visit: Parameters<World['visit']>[0] = {}, place = world) {
  const page = await place.visit(visit)
  const reading = readPage(page)
  await reading.say(words)
  await page.locator('.adk-approval').first().waitFor()
  await reading.idle()
  return { page, ...reading, card: reading.tool, books: readBooks(place, page) }
}

async function readTable(card: Locator, rows = 'tbody tr'): Promise<string[][]> {
  const found = await card.locator(`.adk-arguments ${rows}`).all()
  return Promise.all(found.map((row) => row.locator('th, td').allTextContents()))
}

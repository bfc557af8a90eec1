import { afterAll, afterEach, beforeAll, expect } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { decide } from './support/approvals.ts'
import { readPage } from './support/chat-page.ts'
import { readBooks } from './support/payments.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

longTest(
  '[DM451] a second person approves a large payment on a phone, once, with the link from the card',
  async () => {
    const page = await testDemo.visit({ mode: 'sse' })
    const { say, tool } = readPage(page)
    await say('Send $600 to Alice')
    const card = tool('Alice')
    await decide(card, 'approve')
    await card.getByRole('button', { name: 'Ask another person…' }).click()
    await card.getByRole('img', { name: 'QR code of the link below' }).waitFor()
    await snap(page, 'approval-link')
    const url = await card.getByLabel('Link to this approval').inputValue()

    // The browser of the requester cannot use it.
    const own = await page.context().newPage()
    await own.goto(url)
    await own.getByText('Another person must open the link.').waitFor()

    const phone = await testDemo.visit({ ...PHONE, url })
    const item = phone.getByRole('listitem')
    await item.getByText('Send $600 to Alice').waitFor()
    // The token is gone from the URL, and a reload shows the approval again.
    expect(new URL(phone.url()).hash).toBe('')
    await phone.reload()
    await item.getByText('Send $600 to Alice').waitFor()
    await snap(phone, 'approval-link-phone')
    await decide(item, 'approve')
    await phone.getByText('Your decision was recorded.').waitFor()
    await card.getByText('Approved.').waitFor()
    expect(await readBooks(testDemo, page).paid()).toEqual(['Alice 600'])

    const late = await testDemo.visit({ url })
    await late.getByText('This link was used, has expired, or is not valid.').first().waitFor()
  },
)

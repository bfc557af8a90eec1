import { expect } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { decide } from './support/approvals.ts'
import { chatPage } from './support/chat-page.ts'
import { readAccount } from './support/account.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { PHONE } from './support/touch.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

longTest(
  '[DM451] a second person approves a large payment on a phone, once, with the link from the card',
  async () => {
    const page = await testDemo.openPage({ mode: 'sse' })
    const { send, tool } = chatPage(page)
    await send('Send $600 to Alice')
    const card = tool('Alice')
    await decide(card, 'approve')
    await card.getByRole('button', { name: 'Ask another person…' }).click()
    await card.getByText('only this machine can open this address').waitFor()
    await takeScreenshot(page, 'approval-link')
    const url = await card.getByLabel('Link to this approval').inputValue()

    // The requester's own browser cannot use the link.
    const own = await page.context().newPage()
    await own.goto(url)
    await own.getByRole('button', { name: 'Show the request' }).click()
    await own.getByText('Another person must open the link.').waitFor()

    const phone = await testDemo.openPage({ ...PHONE, url })
    // Loading the page opens nothing: a reload before that keeps the link.
    await phone.reload()
    await phone.getByRole('button', { name: 'Show the request' }).click()
    const item = phone.getByRole('listitem')
    await item.getByText('Send $600 to Alice').waitFor()
    // The token is removed from the URL, and a reload shows the approval again.
    expect(new URL(phone.url()).hash).toBe('')
    await phone.reload()
    await item.getByText('Send $600 to Alice').waitFor()
    await takeScreenshot(phone, 'approval-link-phone')
    await decide(item, 'approve')
    await phone.getByText('Your decision was recorded.').waitFor()
    await card.getByText('Approved.').waitFor()
    expect(await readAccount(testDemo, page).payments()).toEqual(['Alice 600'])

    const late = await testDemo.openPage({ url })
    await late.getByRole('button', { name: 'Show the request' }).click()
    await late.getByText('This link was used').first().waitFor()
  },
)

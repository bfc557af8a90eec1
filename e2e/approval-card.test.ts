import { expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { requestApproval, decide, waitForOutcome } from './support/approvals.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

test('[DM360] a large payment is approved by holding the button, by pointer and by key', async () => {
  const { page, card, account } = await requestApproval(
    testDemo,
    'Send $600 to Alice and $700 to Bob',
  )
  const approve = card('Alice').getByRole('button', { name: 'Approve $600.00' })
  await approve.hover()
  await page.mouse.down()
  await card('Alice').getByText('You approved this (1 of 2)').waitFor()
  await page.mouse.up()
  await card('Bob').getByRole('button', { name: 'Approve $700.00' }).focus()
  await page.keyboard.down('Enter')
  await card('Bob').getByText('You approved this (1 of 2)').waitFor()
  await page.keyboard.up('Enter')
  expect(await account.payments()).toEqual([])
  await takeScreenshot(page, 'card-held')
})

longTest(
  '[RE931] a click that hits a card because it has moved under the pointer decides nothing',
  async () => {
    const { page, card, account } = await requestApproval(testDemo, 'Send $30 to Alice')
    const approve = card('Alice').getByRole('button', { name: 'Approve $30.00' })
    // Of this page only: `page.clock` would stay for later tests, which use the same browser context.
    const setTime = (time: number) => page.evaluate((now) => void (Date.now = () => now), time)
    await setTime(Date.now())
    await approve.hover()
    const move = (pixels: number) =>
      card('Alice').evaluate((element, x) => void (element.style.translate = `${x}px`), pixels)
    // The card moves away from the pointer and back to it.
    await move(2_000)
    await expect.poll(() => approve.evaluate((button) => button.matches(':hover'))).toBe(false)
    await move(0)
    await page.mouse.down()
    await page.mouse.up()
    await expect.poll(() => approve.evaluate((button) => button.matches(':focus'))).toBe(true)
    expect(await account.payments()).toEqual([])
    await setTime(Date.now() + 1_000)
    await page.mouse.down()
    await page.mouse.up()
    await waitForOutcome(card('Alice'))
    expect(await account.payments()).toEqual(['Alice 30'])
  },
)

longTest(
  '[DM361] if the balance has changed elsewhere, the approval is requested again, and the payment ends with a receipt',
  async () => {
    const text = 'Send $30 to Alice and $40 to Bob'
    const { page, card, account } = await requestApproval(testDemo, text)
    await card('Alice').getByText('2 pending: $70.00 of $1,000.00').waitFor()
    const bob = await card('Bob').getAttribute('data-approval')
    // The page does not learn that Bob is paid: its requests for approvals fail.
    await page.route('**/approvals/**', async (route) => {
      if (route.request().method() === 'GET') return route.abort()
      return route.continue()
    })
    const { url } = testDemo.demo
    const data = { approved: true }
    await page.request.post(`${url}/approvals/${bob}`, { data, headers: { origin: url } })
    await expect.poll(account.payments).toEqual(['Bob 40'])
    const approve = card('Alice').getByRole('button', { name: 'Approve $30.00' })
    await approve.click()
    await card('Alice').getByText('This has changed since you looked.').waitFor()
    await card('Alice').getByText('was $1,000.00 → $970.00').waitFor()
    expect(await account.payments()).toEqual(['Bob 40'])
    await takeScreenshot(page, 'card-changed')
    await page.unroute('**/approvals/**')
    await decide(card('Alice'), 'approve')
    await waitForOutcome(card('Alice'))
    const receipt = await card('Alice').textContent()
    expect(receipt).toMatch(/Sent \$30\.00 to Alice.*By you.*\$960\.00.*\$930\.00.*txn_/s)
    expect(await account.payments()).toEqual(['Bob 40', 'Alice 30'])
  },
)

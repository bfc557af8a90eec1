import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'

import { oneOf } from '../test/support/long-run.ts'
import { requestApproval, waitForOutcome } from './support/approvals.ts'
import { findViolations } from './support/axe-violations.ts'
import { chatPage } from './support/chat-page.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo({ variables: { DEMO_REMINDER_MS: '1000' } })

const PLANS = [
  {
    name: 'en',
    request: 'Make a plan: send $20 to Alice, $30 to Bob and $40 to Carol',
    paid: ['Alice 20', 'Bob 30', 'Carol 40'],
    approve: 'Approve',
    balances: ['$1,000.00 → $980.00', '$980.00 → $950.00', '$950.00 → $910.00'],
  },
  {
    name: 'ja',
    request: '計画を立てて、花子さんに20ドル、太郎さんに30ドル、次郎さんに40ドル送金してください',
    paid: ['花子 20', '太郎 30', '次郎 40'],
    approve: '承認',
    balances: [],
  },
] as const

test.each(oneOf(PLANS, 'en'))(
  '[DM1650] a plan of three payments is approved with one decision ($name)',
  async ({ name: locale, request, paid, approve, balances }) => {
    const { page, account, waitUntilIdle } = await requestApproval(testDemo, request, { locale })
    const cards = page.locator('.adk-approval')
    expect(await cards.count()).toBe(1)
    const preview = await cards.locator('.adk-preview').textContent()
    for (const shown of [paid[2]?.slice(0, 2), ...balances]) expect(preview).toContain(shown)
    await takeScreenshot(page, `plan-${locale}`)
    expect(await account.payments()).toEqual([])
    const button = cards.getByRole('button', { name: approve }).first()
    await expect
      .poll(
        async () => {
          if (await button.isVisible())
            await button.click({ timeout: 1_000 }).catch(() => undefined)
          return (await account.payments()).toSorted((one, other) => one.localeCompare(other))
        },
        { timeout: 60_000, interval: 600 },
      )
      .toEqual(paid.toSorted((one, other) => one.localeCompare(other)))
    await waitUntilIdle()
    expect(await account.pendingApprovals()).toEqual([])
    await takeScreenshot(page, `plan-approved-${locale}`)
  },
)

test('[DM1651] a person lets further payments to the same person run, and revokes it', async () => {
  const { page, card, account, send, waitUntilIdle } = await requestApproval(
    testDemo,
    'Send $20 to Alice',
  )
  await card('Alice')
    .getByRole('checkbox', { name: /Do not ask again/ })
    .check()
  await takeScreenshot(page, 'grant-offer')
  await card('Alice').getByRole('button', { name: 'Approve' }).click()
  await waitForOutcome(card('Alice'))
  await waitUntilIdle()
  await send('Send $30 to Alice')
  await expect.poll(() => account.payments(), { timeout: 60_000 }).toEqual(['Alice 20', 'Alice 30'])
  await waitUntilIdle()
  await takeScreenshot(page, 'grant-used')
  await page.getByRole('button', { name: /^Revoke/ }).click()
  await page.getByRole('button', { name: /^Revoke/ }).waitFor({ state: 'detached' })
  await send('Send $10 to Alice')
  await card('Alice').last().getByRole('button', { name: 'Approve' }).waitFor()
  expect(await account.payments()).toHaveLength(2)
})

test('[DM1652] a person decides in the Slack of the demo, after a reminder, and nobody else can', async () => {
  const { page, account, replies } = await requestApproval(testDemo, 'Send $50 to Alice')
  const slack = await page.context().newPage()
  await slack.goto(`${testDemo.demo.url}/slack`)
  const cards = slack.getByRole('article', { name: 'Payment' })
  await cards.getByText('Still needs approval').first().waitFor()
  const approve = cards.first().getByRole('button', { name: 'Approve' })
  await approve.focus()
  const place = await approve.boundingBox()
  const other = chatPage(await openNewChat(page))
  await other.send('Send $60 to Bob')
  await expect.poll(() => cards.count(), { timeout: 60_000 }).toBe(2)
  // What arrives moves neither the button nor the focus.
  expect(await approve.boundingBox()).toEqual(place)
  expect(await approve.evaluate((button) => button === document.activeElement)).toBe(true)
  expect(await findViolations(slack)).toEqual([])
  await takeScreenshot(slack, 'slack-card')
  const stranger = await testDemo.openPage({ url: `${testDemo.demo.url}/slack` })
  expect(await stranger.locator('article').count()).toBe(0)
  const [ts, value] = await Promise.all(
    ['ts', 'value'].map((name) =>
      cards.first().locator(`input[name=${name}]`).first().inputValue(),
    ),
  )
  const form = { ts: ts ?? '', value: value ?? '', action: 'adk-approve' }
  const click = { form, headers: { 'sec-fetch-site': 'same-origin' }, maxRedirects: 0 }
  expect((await stranger.request.post(`${testDemo.demo.url}/slack/click`, click)).status()).toBe(
    303,
  )
  const foreign = { ...click, headers: { 'sec-fetch-site': 'cross-site' } }
  expect((await page.request.post(`${testDemo.demo.url}/slack/click`, foreign)).status()).toBe(404)
  expect(await account.payments()).toEqual([])

  await approve.press('Enter')
  await cards.getByText('Approved and done').first().waitFor()
  await takeScreenshot(slack, 'slack-approved')
  expect(await account.payments()).toEqual(['Alice 50'])
  await replies.getByText('I sent $50.00 to Alice').waitFor()

  await cards.last().getByRole('button', { name: 'Deny' }).click()
  await slack.getByLabel('Reason').fill('Too much.')
  await takeScreenshot(slack, 'slack-denial')
  await slack.getByRole('button', { name: 'Deny' }).first().click()
  await other.replies.getByText('Too much.').first().waitFor()
  expect(await account.payments()).toEqual(['Alice 50'])
})

/** Opens a chat in another tab of the same person. */
async function openNewChat(page: Page): Promise<Page> {
  const other = await page.context().newPage()
  await other.goto(testDemo.demo.url)
  await other.getByRole('button', { name: 'New chat' }).click()
  return other
}

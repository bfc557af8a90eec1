import type { Locator, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { isLong } from '../test/support/long-run.ts'
import { longTest } from '../test/support/long-test.ts'
import { testModes } from './support/modes.ts'
import { requestApproval, decide, waitForOutcome, RAN_ONCE } from './support/approvals.ts'
import { chatPage } from './support/chat-page.ts'
import { readAccount } from './support/account.ts'
import { chooseMode, expectCounts } from './support/app-shell.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const API_KEY = 'a-key-of-sixteen-characters'

const testDemo = useTestDemo({ variables: { API_KEY } })

/**
 * Opens a demo with the built-in emulator, where a user may become the second approver. Each test opens its own, because the second
 * approver sees the approvals of all users.
 */
function openDemoWithApprover(): Promise<TestDemo> {
  return openTestDemo({ variables: { GOOGLE_API_KEY: '', GOOGLE_GEMINI_BASE_URL: '' } })
}

/** Returns options for a page at the approver link that the terminal shows. */
function approverPage({ demo }: TestDemo): { url: string } {
  return { url: demo.approverUrl ?? '' }
}

/** Returns the list of the page that the link of the approver opens. */
function pendingApprovals(page: Page): Locator {
  return page.locator('.approvals-page').getByRole('region', { name: 'Pending approvals' })
}

longTest('[DM19] a second approver enters the code that the terminal shows', async () => {
  await using demoWithApprover = await openDemoWithApprover()
  const { url, approverUrl = '' } = demoWithApprover.demo
  const page = await demoWithApprover.openPage({ url: `${url}/?as=approver` })
  const dialog = page.getByRole('dialog', { name: 'Second approver' })
  const enter = async (code: string) => {
    await dialog.getByLabel('Code from the terminal').fill(code)
    await dialog.getByRole('button', { name: 'Become second approver' }).click()
  }
  await enter('wrong')
  await dialog.getByRole('alert').waitFor()
  await takeScreenshot(page, 'approver-code')
  await enter(new URL(approverUrl).searchParams.get('code') ?? '')
  await page.waitForURL(`${url}/?view=approvals`)
  await page.getByRole('button', { name: /^Approvals: / }).waitFor()
  expect(await dialog.count()).toBe(0)
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest('[DM38] a tab shows the decision of another tab', async () => {
    const { page, card, account, id, replies, results } = await requestApproval(
      testDemo,
      'Send $50 to Alice',
      { mode },
    )
    const other = await page.context().newPage()
    await other.goto(page.url())
    await decide(chatPage(other).tool('Alice'), 'approve')
    await waitForOutcome(card('Alice'))
    await expect
      .poll(() => replies.locator('.markdown').last().textContent())
      .toContain('I sent $50.00 to Alice')
    expect(await replies.count()).toBe(1)
    expect(await account.payments()).toEqual(['Alice 50'])
    expect(await account.history(id)).toEqual(RAN_ONCE)
    expect(results()).toHaveLength(1)
    await takeScreenshot(page, `approval-other-tab-${mode}`)
  })
})

describe.each(testModes('sse'))('%s', (mode) => {
  // In `npm test`, RE11 covers this without a browser.
  longTest('[DM39] an approval of the open chat is decided in the inbox', async () => {
    const { page, card, account, id, waitUntilIdle, replies } = await requestApproval(
      testDemo,
      'Send $50 to Alice',
      {
        mode,
      },
    )
    await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
    const item = page.getByRole('listitem', { name: 'Send $50.00 to Alice' })
    await takeScreenshot(page, `inbox-${mode}`)
    await item.getByRole('button', { name: 'Deny…' }).click()
    await item.getByLabel('Reason (optional)').fill('too much')
    await item.getByRole('button', { name: 'Deny', exact: true }).click()
    await page.getByText('No approvals are pending.').waitFor()
    await card('Alice').getByText('Denied. Nothing was done. Reason: too much').waitFor()
    await replies.locator('.markdown').last().waitFor()
    await waitUntilIdle()
    expect(await account.history(id)).toEqual(['requested', 'denied'])
    expect(await account.payments()).toEqual([])
    expect(await replies.count()).toBe(1)
  })
})

describe.each(testModes('live'))('%s', (mode) => {
  test('[DM39] the inbox counts the pending approvals of all chats, decides one, and links to its chat', async () => {
    const { page, card, account, id, results } = await requestApproval(
      testDemo,
      'Send $50 to Alice',
      { mode },
    )
    const address = page.url()
    await expectCounts(page, 1)
    await page.getByRole('button', { name: 'New chat' }).click()
    await page.getByText('What would you like to do?').waitFor()
    await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
    await page.getByRole('link', { name: 'Open chat' }).click()
    await card('Alice').waitFor()
    expect(page.url()).toBe(address)
    await takeScreenshot(page, `inbox-open-chat-${mode}`)

    await page.getByRole('button', { name: 'New chat' }).click()
    await page.getByText('What would you like to do?').waitFor()
    await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
    const item = page.getByRole('listitem', { name: 'Send $50.00 to Alice' })
    await item.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('No approvals are pending.').waitFor()
    await expect.poll(account.payments).toEqual(['Alice 50'])
    await expectCounts(page, 0)

    await page.goBack()
    await waitForOutcome(card('Alice'))
    expect(page.url()).toBe(address)
    await page.getByRole('log').getByText('I sent $50.00 to Alice').waitFor()
    expect(await account.history(id)).toEqual(RAN_ONCE)
    expect(results()).toHaveLength(1)
    await takeScreenshot(page, `inbox-decided-${mode}`)
  })
})

describe.each(testModes('sse'))('%s', (mode) => {
  test.each(isLong ? (['approve', 'deny'] as const) : (['approve'] as const))(
    '[DM73] an approval that was requested in one mode is decided in the other: %s',
    async (choice) => {
      const { page, card, account, id, waitUntilIdle, replies } = await requestApproval(
        testDemo,
        'Send $50 to Alice',
        { mode },
      )
      await chooseMode(page, mode === 'sse' ? 'Talk' : 'Chat')
      await decide(card('Alice'), choice)
      await waitForOutcome(card('Alice'), choice)
      await replies.locator('.markdown').last().waitFor()
      await waitUntilIdle()
      expect(await account.payments()).toEqual(choice === 'approve' ? ['Alice 50'] : [])
      expect(await account.history(id)).toEqual(
        choice === 'approve' ? RAN_ONCE : ['requested', 'denied'],
      )
      expect(await replies.count()).toBe(1)
      await takeScreenshot(page, `approval-requested-in-${mode}-${choice}`)
    },
  )
})

describe.each(testModes('sse'))('%s', (mode) => {
  longTest('[DM40] a large payment needs a second approver, which may be a program', async () => {
    const { page, card, account, id } = await requestApproval(testDemo, 'Send $600 to Alice', {
      mode,
    })
    const payment = card('Alice')
    await payment.getByText('High risk').waitFor()
    await payment.getByText('Needs approval from 2 people').waitFor()
    expect(await payment.getByRole('button', { name: 'Edit…' }).count()).toBe(0)
    await decide(payment, 'approve')
    await payment.getByText('You approved this (1 of 2)').waitFor()
    expect(await account.payments()).toEqual([])

    const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' }
    const url = `${testDemo.demo.url}/approvals/${id}`
    const body = JSON.stringify({ approved: true })
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200)
    await waitForOutcome(payment)
    expect(await account.payments()).toEqual(['Alice 600'])
    await page.reload()
    await waitForOutcome(payment)
    await takeScreenshot(page, `approval-second-program-${mode}`)
  })
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest.each([mode === 'live' ? 'approve' : 'deny'] as const)(
    '[DM74] the second person decides in another browser: %s',
    async (choice) => {
      await using demoWithApprover = await openDemoWithApprover()
      const { page, card, account, id } = await requestApproval(
        demoWithApprover,
        'Send $600 to Alice',
        { mode },
      )
      const payment = card('Alice')
      const second = await demoWithApprover.openPage({ mode, ...approverPage(demoWithApprover) })
      await second.getByRole('main').getByText('This browser is the second approver').waitFor()
      await decide(payment, 'approve')
      await payment.getByText('You approved this (1 of 2)').waitFor()
      // Neither the card nor the server lets the owner approve twice.
      expect(await payment.getByRole('button', { name: 'Approve' }).count()).toBe(0)
      const repeated = await page.request.post(`${demoWithApprover.demo.url}/approvals/${id}`, {
        data: { approved: true },
        headers: { origin: demoWithApprover.demo.url },
      })
      expect(repeated.ok()).toBe(false)
      expect(await account.payments()).toEqual([])
      await takeScreenshot(page, `approval-first-person-${choice}-${mode}`)

      const approvals = pendingApprovals(second)
      const item = approvals.getByRole('listitem', { name: 'Send $600.00 to Alice' })
      await item.getByText('1 of 2 people have approved').waitFor()
      expect(await item.getByRole('link').count()).toBe(0)
      await takeScreenshot(second, `approval-second-person-${choice}-${mode}`)
      await decide(item, choice)
      await approvals.getByText('No approvals are pending.').waitFor()
      await waitForOutcome(payment, choice)
      expect(await account.payments()).toEqual(choice === 'approve' ? ['Alice 600'] : [])
      expect(await readAccount(demoWithApprover, second).payments()).toEqual([])
      const history = await account.history(id)
      expect(history.filter((type) => type === 'started')).toHaveLength(
        choice === 'approve' ? 1 : 0,
      )
    },
  )
})

describe.each(testModes('sse'))('%s', (mode) => {
  // In `npm test`, apps/demo/test/server.test.ts sends the requests of both persons.
  longTest(
    '[DM74] the second person cannot approve first, and the owner cannot be the second person',
    async () => {
      await using demoWithApprover = await openDemoWithApprover()
      const { page, card, account, id } = await requestApproval(
        demoWithApprover,
        'Send $600 to Alice',
        { mode },
      )
      const second = await demoWithApprover.openPage({ mode, ...approverPage(demoWithApprover) })
      // The page has the role when the code is removed from its URL.
      await second.waitForURL(`${demoWithApprover.demo.url}/?view=approvals`)
      const early = await second.request.post(`${demoWithApprover.demo.url}/approvals/${id}`, {
        data: { approved: true },
        headers: { origin: demoWithApprover.demo.url },
      })
      expect(early.status()).toBe(403)
      // The owner takes the role, too, and still cannot approve twice.
      await decide(card('Alice'), 'approve')
      await card('Alice').getByText('You approved this (1 of 2)').waitFor()
      const own = await page.context().newPage()
      await own.goto(approverPage(demoWithApprover).url)
      await own.getByRole('heading', { name: 'Pending approvals' }).waitFor()
      const repeated = await own.request.post(`${demoWithApprover.demo.url}/approvals/${id}`, {
        data: { approved: true },
        headers: { origin: demoWithApprover.demo.url },
      })
      expect(repeated.ok()).toBe(false)
      await takeScreenshot(own, `approval-owner-as-second-${mode}`)

      const approvals = pendingApprovals(second)
      await decide(approvals.getByRole('listitem', { name: 'Send $600.00 to Alice' }), 'deny')
      await waitForOutcome(card('Alice'), 'deny')
      expect(await account.payments()).toEqual([])
    },
  )
})

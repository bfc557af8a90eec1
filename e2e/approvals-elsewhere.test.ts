import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { isLong } from '../test/support/long-run.ts'
import { longTest } from '../test/support/long-test.ts'
import { modesOf } from './support/modes.ts'
import { ask, decide, ending, RAN } from './support/approvals.ts'
import { readPage } from './support/chat-page.ts'
import { readBooks } from './support/payments.ts'
import { chooseMode } from './support/shell-page.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

const API_KEY = 'a-key-of-sixteen-characters'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo({ API_KEY })
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

/**
 * A server where people may choose to be the second person: the built-in emulator answers. Each test has one of its own, since the
 * second person sees what everybody asks.
 */
function openHousehold(): Promise<TestDemo> {
  return openTestDemo({ GOOGLE_API_KEY: '', GOOGLE_GEMINI_BASE_URL: '' })
}

/** The link that the terminal shows. */
function approverPage({ demo }: TestDemo): { url: string } {
  return { url: demo.approverUrl ?? '' }
}

test('[DM19] a second approver enters the code that the terminal shows', async () => {
  await using household = await openHousehold()
  const { url, approverUrl = '' } = household.demo
  const page = await household.visit({ url: `${url}/?as=approver` })
  const dialog = page.getByRole('dialog', { name: 'Second approver' })
  const enter = async (code: string) => {
    await dialog.getByLabel('Code from the terminal').fill(code)
    await dialog.getByRole('button', { name: 'Become second approver' }).click()
  }
  await enter('wrong')
  await dialog.getByRole('alert').waitFor()
  await snap(page, 'approver-code')
  await enter(new URL(approverUrl).searchParams.get('code') ?? '')
  await page.waitForURL(`${url}/`)
  await page.getByRole('button', { name: /^Approvals: / }).waitFor()
  expect(await dialog.count()).toBe(0)
})

describe.each(modesOf('live'))('%s', (mode) => {
  longTest('[DM38] a tab shows the decision of another tab', async () => {
    const scene = await ask(testDemo, 'Send $50 to Alice', { mode })
    const { page, card, books, id, answers, results } = scene
    const other = await page.context().newPage()
    await other.goto(page.url())
    await decide(readPage(other).tool('Alice'), 'approve')
    await ending(card('Alice'))
    await expect
      .poll(() => answers.locator('.markdown').last().textContent())
      .toContain('I sent $50.00 to Alice')
    expect(await answers.count()).toBe(1)
    expect(await books.paid()).toEqual(['Alice 50'])
    expect(await books.history(id)).toEqual(RAN)
    expect(results()).toHaveLength(1)
    await snap(page, `approval-other-tab-${mode}`)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  // Without a page, RE11 is the same.
  longTest('[DM39] an approval of the open chat is decided in the inbox', async () => {
    const { page, card, books, id, idle, answers } = await ask(testDemo, 'Send $50 to Alice', {
      mode,
    })
    await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
    const item = page.getByRole('listitem', { name: 'Send $50.00 to Alice' })
    await snap(page, `inbox-${mode}`)
    await item.getByRole('button', { name: 'Deny…' }).click()
    await item.getByLabel('Reason (optional)').fill('too much')
    await item.getByRole('button', { name: 'Deny', exact: true }).click()
    await page.getByText('No approvals are pending.').waitFor()
    await card('Alice').getByText('Denied. It did not run. Reason: too much').waitFor()
    await answers.locator('.markdown').last().waitFor()
    await idle()
    expect(await books.history(id)).toEqual(['requested', 'denied'])
    expect(await books.paid()).toEqual([])
    expect(await answers.count()).toBe(1)
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  test('[DM39] the inbox counts the pending approvals of all chats, decides one, and links to its chat', async () => {
    const { page, card, books, id, results } = await ask(testDemo, 'Send $50 to Alice', { mode })
    const address = page.url()
    await page.getByRole('button', { name: 'New chat' }).click()
    await page.getByText('What would you like to do?').waitFor()
    await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
    await page.getByRole('link', { name: 'Open chat' }).click()
    await card('Alice').waitFor()
    expect(page.url()).toBe(address)
    await snap(page, `inbox-led-${mode}`)

    await page.getByRole('button', { name: 'New chat' }).click()
    await page.getByText('What would you like to do?').waitFor()
    await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
    const item = page.getByRole('listitem', { name: 'Send $50.00 to Alice' })
    await item.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('No approvals are pending.').waitFor()
    await expect.poll(books.paid).toEqual(['Alice 50'])

    await page.goBack()
    await ending(card('Alice'))
    expect(page.url()).toBe(address)
    await page.getByText('I sent $50.00 to Alice').waitFor()
    expect(await books.history(id)).toEqual(RAN)
    expect(results()).toHaveLength(1)
    await snap(page, `inbox-decided-${mode}`)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test.each(isLong ? (['approve', 'deny'] as const) : (['approve'] as const))(
    '[DM73] an approval that was requested in one mode is decided in the other: %s',
    async (choice) => {
      const scene = await ask(testDemo, 'Send $50 to Alice', { mode })
      const { page, card, books, id, idle, answers } = scene
      await chooseMode(page, mode === 'sse' ? 'Talk' : 'Chat')
      await decide(card('Alice'), choice)
      await ending(card('Alice'), choice)
      await answers.locator('.markdown').last().waitFor()
      await idle()
      expect(await books.paid()).toEqual(choice === 'approve' ? ['Alice 50'] : [])
      expect(await books.history(id)).toEqual(choice === 'approve' ? RAN : ['requested', 'denied'])
      expect(await answers.count()).toBe(1)
      await snap(page, `approval-asked-in-${mode}-${choice}`)
    },
  )
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM40] a large payment needs a second approver, which may be a program', async () => {
    const { page, card, books, id } = await ask(testDemo, 'Send $600 to Alice', { mode })
    const payment = card('Alice')
    await payment.getByText('High risk').waitFor()
    await payment.getByText('Needs approval from 2 people').waitFor()
    expect(await payment.getByRole('button', { name: 'Edit…' }).count()).toBe(0)
    await decide(payment, 'approve')
    await payment.getByText('You approved this (1 of 2)').waitFor()
    expect(await books.paid()).toEqual([])

    const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' }
    const url = `${testDemo.demo.url}/approvals/${id}`
    const body = JSON.stringify({ approved: true })
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200)
    await ending(payment)
    expect(await books.paid()).toEqual(['Alice 600'])
    await page.reload()
    await ending(payment)
    await snap(page, `approval-second-program-${mode}`)
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  longTest.each([mode === 'live' ? 'approve' : 'deny'] as const)(
    '[DM74] the second person decides in another browser: %s',
    async (choice) => {
      await using household = await openHousehold()
      const { page, card, books, id } = await ask(household, 'Send $600 to Alice', { mode })
      const payment = card('Alice')
      const second = await household.visit({ mode, ...approverPage(household) })
      await decide(payment, 'approve')
      await payment.getByText('You approved this (1 of 2)').waitFor()
      // The owner has said what they can: neither the card nor the server lets them be the second.
      expect(await payment.getByRole('button', { name: 'Approve' }).count()).toBe(0)
      const again = await page.request.post(`${household.demo.url}/approvals/${id}`, {
        data: { approved: true },
        headers: { origin: household.demo.url },
      })
      expect(again.ok()).toBe(false)
      expect(await books.paid()).toEqual([])
      await snap(page, `approval-first-person-${choice}-${mode}`)

      await second.getByRole('button', { name: 'Approvals: 1 pending' }).click()
      const item = second.getByRole('listitem', { name: 'Send $600.00 to Alice' })
      await item.getByText('1 of 2 people have approved').waitFor()
      expect(await item.getByRole('link').count()).toBe(0)
      await snap(second, `approval-second-person-${choice}-${mode}`)
      await decide(item, choice)
      await second.getByText('No approvals are pending.').waitFor()
      await ending(payment, choice)
      expect(await books.paid()).toEqual(choice === 'approve' ? ['Alice 600'] : [])
      expect(await readBooks(household, second).paid()).toEqual([])
      const history = await books.history(id)
      expect(history.filter((type) => type === 'started')).toHaveLength(
        choice === 'approve' ? 1 : 0,
      )
    },
  )
})

describe.each(modesOf('sse'))('%s', (mode) => {
  // In `npm test`, the requests of both persons are sent without a page.
  longTest(
    '[DM74] the second person cannot approve first, and the owner cannot be the second person',
    async () => {
      await using household = await openHousehold()
      const { page, card, books, id: asked } = await ask(household, 'Send $600 to Alice', { mode })
      const second = await household.visit({ mode, ...approverPage(household) })
      // The page has taken the role when the code is gone from its address.
      await second.waitForURL(`${household.demo.url}/`)
      const early = await second.request.post(`${household.demo.url}/approvals/${asked}`, {
        data: { approved: true },
        headers: { origin: household.demo.url },
      })
      expect(early.status()).toBe(403)
      // The owner takes the role, too: who has approved once is not another person.
      await decide(card('Alice'), 'approve')
      await card('Alice').getByText('You approved this (1 of 2)').waitFor()
      const own = await page.context().newPage()
      await own.goto(approverPage(household).url)
      await own.getByRole('button', { name: /^Approvals: / }).click()
      await own.getByRole('heading', { name: 'Pending approvals' }).waitFor()
      const again = await own.request.post(`${household.demo.url}/approvals/${asked}`, {
        data: { approved: true },
        headers: { origin: household.demo.url },
      })
      expect(again.ok()).toBe(false)
      await snap(own, `approval-owner-as-second-${mode}`)

      await second.getByRole('button', { name: 'Approvals: 1 pending' }).click()
      await decide(second.getByRole('listitem', { name: 'Send $600.00 to Alice' }), 'deny')
      await ending(card('Alice'), 'deny')
      expect(await books.paid()).toEqual([])
    },
  )
})

import { expect } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { requestApproval, decide, waitForOutcome } from './support/approvals.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const mode = 'direct'

const testDemo = useTestDemo()

longTest(
  '[DM75] a pending approval of the AI SDK is kept after a reload, and the approved payment is made once',
  async () => {
    const { page, card, account, waitUntilIdle, replies, results } = await requestApproval(
      testDemo,
      'Send $50 to Alice',
      {
        mode,
      },
    )
    expect(await account.pendingApprovals()).toEqual([])
    expect(await card('Alice').getByRole('button', { name: 'Edit…' }).count()).toBe(0)
    await page.reload()
    await card('Alice').waitFor()
    await takeScreenshot(page, 'approval-requested-direct')
    await card('Alice').getByRole('button', { name: 'Approve' }).dblclick()
    await waitForOutcome(card('Alice'))
    await waitUntilIdle()
    expect(await account.payments()).toEqual(['Alice 50'])
    expect(results()).toMatchObject([{ content: { success: true, amount: 50 } }])
    expect(await replies.count()).toBe(1)
    expect(await replies.locator('.markdown').last().textContent()).toContain(
      'I sent $50.00 to Alice',
    )
    await takeScreenshot(page, 'approval-approved-direct')

    await page.reload()
    await waitForOutcome(card('Alice'))
    expect(await account.payments()).toEqual(['Alice 50'])
  },
)

longTest(
  '[DM49] [DM75] a denied payment does not run while the location waits, which is read after its approval',
  async () => {
    const { page, card, account, waitUntilIdle, replies } = await requestApproval(
      testDemo,
      'Send $40 to Bob and tell me where I am',
      {
        mode,
        permissions: ['geolocation'],
        geolocation: { latitude: 35.0116, longitude: 135.7681 },
      },
    )
    const location = card('get_location')
    await location.getByText('Share your location with the assistant').waitFor()
    await decide(card('Bob'), 'deny')
    await card('Bob').getByText('Denied. It will not be done.').waitFor()
    expect(await card('Bob').textContent()).not.toMatch(/Running|Informing/)
    await takeScreenshot(page, 'approvals-held-direct')
    await decide(location, 'approve')
    await waitForOutcome(location)
    await waitForOutcome(card('Bob'), 'deny')
    await waitUntilIdle()
    expect(await replies.locator('.markdown').last().textContent()).toContain('35.01')
    expect(await account.payments()).toEqual([])
  },
)

longTest(
  '[DM75] of two payments one is approved and one denied, and the model receives the reason',
  async () => {
    const text = 'Send $30 to Alice and $40 to Bob'
    const { page, card, account, waitUntilIdle, replies, results } = await requestApproval(
      testDemo,
      text,
      { mode },
    )
    await card('Bob').getByRole('button', { name: 'Deny…' }).click()
    await card('Bob').getByLabel('Reason (optional)').fill('not this month')
    await card('Bob').getByRole('button', { name: 'Deny', exact: true }).click()
    expect(await account.payments()).toEqual([])
    await decide(card('Alice'), 'approve')
    await waitForOutcome(card('Alice'), 'approve')
    await card('Bob').getByText('Denied. Nothing was done. Reason: not this month').waitFor()
    await replies.locator('.markdown').last().waitFor()
    await waitUntilIdle()
    const reply = await replies.locator('.markdown').last().textContent()
    expect(reply).toContain('was not carried out')
    expect(reply).toContain('not this month')
    expect(await account.payments()).toEqual(['Alice 30'])
    expect(results()).toHaveLength(2)
    await takeScreenshot(page, 'approvals-two-direct')
  },
)

longTest(
  '[DM161] a payment that the wallet refuses is shown as failed, with the reason',
  async () => {
    const text = 'Send $450 to Ann and $450 to Ben and $450 to Cid'
    const { page, card, account, waitUntilIdle } = await requestApproval(testDemo, text, { mode })
    // Direct mode has no previews, and runs the calls when all of them are decided.
    for (const name of ['Ann', 'Ben', 'Cid']) await decide(card(name), 'approve')
    const refused = card('Cid')
    await refused.getByText('Approved, but it failed.').waitFor()
    await refused.getByText('Not sent: $450.00 to Cid').waitFor()
    expect(await refused.locator('.adk-tool-state').textContent()).toBe('Failed')
    expect(await refused.locator('.adk-failure').textContent()).toBe(
      'Insufficient funds. Balance: 100 USD, requested: 450 USD.',
    )
    await waitUntilIdle()
    expect(await account.payments()).toEqual(['Ann 450', 'Ben 450'])
    await takeScreenshot(page, `payment-refused-${mode}`)
  },
)

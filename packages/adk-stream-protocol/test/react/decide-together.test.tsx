import { render, screen, waitFor, within } from '@testing-library/react'
import { expect, test } from 'vitest'

import { AdkProvider, MessageList } from '../../src/react/index.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { TestBrowser, WAYS } from './support/chat-page.tsx'
import { LANGUAGES } from './support/languages.ts'
import { answer, approvalPart, payment } from './support/messages.ts'

const PAYMENTS = `${[10, 20, 30].map((amount) => callPayment(amount)).join('')}[[then]][[say Paid.]]`

/** Opens the list of calls that can be decided together, with the keyboard. */
async function openList({ user }: Pick<ReturnType<TestBrowser['show']>, 'user'>) {
  const summary = await screen.findByText('Decide 3 together: Process payment')
  summary.focus()
  // Browsers open the list on Enter; jsdom knows only the click that follows.
  await user.click(summary)
  return within(summary.parentElement as HTMLElement)
}

test.each(WAYS)(
  '[RE1700] calls of a chat are approved in one request, each with the preview that was shown (%s)',
  async (way) => {
    await using testBridge = await TestBridge.open({
      approvals: {
        process_payment: {
          preview: ({ amount }) => ({
            headline: `Send $${String(amount)}`,
            lines: [{ label: 'Fee', value: `$${String(amount)}0` }],
          }),
          requirePreview: true,
        },
      },
    })
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ api: browser.api })
    page.say(PAYMENTS)
    const list = await openList(page)
    const texts = list.getAllByRole('listitem').map(({ textContent }) => textContent)
    expect(texts).toHaveLength(3)
    for (const [index, amount] of [10, 20, 30].entries())
      expect(texts[index]).toMatch(
        new RegExp(`^Send \\$${amount}amount: ${amount}.*Fee\\$${amount}0$`),
      )
    list.getByRole('button', { name: 'Approve these 3' }).focus()
    await page.user.keyboard('{Enter}')
    await page.until('Paid.')
    expect(document.activeElement).toBe(screen.getByRole('log'))
    expect(new Set(testBridge.wallet.payments.map(({ amount }) => amount))).toEqual(
      new Set([10, 20, 30]),
    )
    expect(browser.sent.filter((sent) => sent.startsWith('POST /approvals'))).toEqual([
      'POST /approvals',
    ])
    expect(screen.queryByText(/together/)).toBeNull()
    expect([...page.chat.refusals, ...page.errors]).toEqual([])
  },
)

test.each(WAYS)(
  '[RE1700] of calls of a chat that are denied or approved together, a refused one says why on its card (%s)',
  async (way) => {
    let changed = false
    await using testBridge = await TestBridge.open({
      approvals: {
        process_payment: {
          preview: ({ amount }) => ({
            headline: `Send $${String(amount)}`,
            ...(changed && amount === 20 && { blocked: 'The account is closed.' }),
          }),
        },
      },
    })
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ api: browser.api })
    page.say(PAYMENTS)
    const list = await openList(page)
    changed = true
    await page.user.click(list.getByRole('button', { name: 'Approve these 3' }))
    await waitFor(() => expect(page.chat.refusals.size).toBe(1))
    await waitFor(() => expect(testBridge.wallet.payments).toHaveLength(2))
    const [refusal] = page.chat.refusals.values()
    expect(refusal?.code).toBe('preview-changed')
    // The two others are decided, and the refused one waits.
    await waitFor(() => expect(screen.getAllByRole('button', { name: 'Deny…' })).toHaveLength(1))
    expect(screen.queryByText(/together/)).toBeNull()
  },
)

test('[RE1700] if no decision arrives, all cards say so, and the calls can be decided together again', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  page.say(PAYMENTS)
  const list = await openList(page)
  await page.untilReady()
  browser.isOffline = true
  await page.user.click(list.getByRole('button', { name: 'Deny these 3' }))
  await waitFor(() => expect(page.chat.refusals.size).toBe(3))
  browser.isOffline = false
  const again = await openList(page)
  await page.user.click(again.getByRole('button', { name: 'Deny these 3' }))
  await page.until('Paid.')
  expect(testBridge.wallet.payments).toEqual([])
})

const CASES: readonly [string, number, Parameters<typeof approvalPart>[0]][] = [
  ['a plain call', 2, {}],
  ['high severity', 0, { severity: 'high' }],
  ['a misleading value', 0, { misleading: true }],
  [
    'a blocked preview',
    0,
    { hasPreview: true, preview: { headline: 'x', blocked: 'No.', digest: 'd' } },
  ],
  ['a missing preview', 0, { hasPreview: true }],
  ['a payload', 0, { payload: { pin: '' } }],
  ['several approvers', 0, { approvers: 2 }],
  ['a question', 0, { kind: 'elicitation' }],
  ['a decision', 0, { state: 'approved' }],
]

test.each(
  CASES.flatMap(([what, count, data]) =>
    (['en', 'ja'] as const).map((language) => ({ what, count, data, language })),
  ),
)('[RE1700] of two calls of a chat, one with $what ($language)', ({ count, data, language }) => {
  const labels = LANGUAGES[language]
  const other = payment({ toolCallId: 'call-2', approval: { id: 'approval-2' } })
  const second = approvalPart({ approvalId: 'approval-2', toolCallId: 'call-2', ...data })
  const view = render(
    <AdkProvider labels={labels}>
      <MessageList
        messages={[
          answer(payment(), approvalPart(), other, {
            ...second,
            id: 'approval-2',
          } as typeof second),
        ]}
        onDecideTogether={() => undefined}
      />
    </AdkProvider>,
  )
  const name = labels.inbox.together.approve(2)
  expect(screen.queryAllByText(name)).toHaveLength(count / 2)
  view.unmount()
})

import { act, render, screen } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { AdkError } from '../../src/client/adk-error.ts'
import type { EditPreview, PendingApproval } from '../../src/protocol/server-views.ts'
import type { ShownPreview } from '../../src/protocol/preview.ts'
import {
  AdkProvider,
  ApprovalInbox,
  type Decision,
  ja,
  MessageList,
} from '../../src/react/index.ts'
import type { AdkProviderProps } from '../../src/react/provider.tsx'
import { LANGUAGES } from './support/languages.ts'
import { answer, approvalPart, payment } from './support/messages.ts'

beforeEach(() => void vi.useFakeTimers({ shouldAdvanceTime: true }))
afterEach(() => void vi.useRealTimers())

const user = userEvent.setup({ advanceTimers: (ms) => vi.advanceTimersByTime(ms) })
const INPUT = { amount: 70, recipient: 'Carol' }

const toPreview = (amount: unknown, recipient: unknown, more: object = {}): ShownPreview => ({
  headline: `Send $${String(amount)} to ${String(recipient)}`,
  action: `$${String(amount)}`,
  changes: [{ label: 'Balance', before: '$1,000', after: `$${1000 - Number(amount)}` }],
  amount: { value: Number(amount), currency: 'USD', available: 1000, aloneUpTo: 500 },
  digest: `${String(amount)}-${String(recipient)}`,
  ...more,
})

interface Asked {
  readonly args: Readonly<Record<string, unknown>>
  readonly signal: AbortSignal | undefined
  readonly respond: (edit?: EditPreview | AdkError) => Promise<void>
}

/** An API whose responses the test gives. */
function createApi() {
  const asked: Asked[] = []
  const previewEdit = (_id: string, args: Asked['args'], signal?: AbortSignal) =>
    new Promise<EditPreview>((resolve, reject) => {
      const { amount, recipient } = args
      const made = { hasPreview: true, preview: toPreview(amount, recipient) }
      asked.push({
        args,
        signal,
        respond: (edit = made) =>
          act(async () => (edit instanceof AdkError ? reject(edit) : resolve(edit))),
      })
    })
  return { asked, api: { signIn: async () => undefined, previewEdit } }
}

type Place = 'card' | 'inbox'

function show(place: Place, settings: Partial<AdkProviderProps> = {}): Decision[] {
  const decided: Decision[] = []
  const preview = toPreview(70, 'Carol')
  const pending: PendingApproval = {
    id: 'approval-1',
    state: 'requested',
    toolName: 'process_payment',
    title: 'Payment',
    args: INPUT,
    severity: 'medium',
    hasPreview: true,
    preview,
    requestedAt: Date.now(),
    deadline: Date.now() + 90_000,
    approvals: { given: 0, needed: 1 },
    voted: false,
    step: 0,
    own: true,
  }
  const message = answer(payment({ input: INPUT }), approvalPart({ hasPreview: true, preview }))
  const decide = (_id: string, decision: Decision): void => void decided.push(decision)
  render(
    <AdkProvider {...settings}>
      {place === 'card' ? (
        <MessageList messages={[message]} onDecide={decide} />
      ) : (
        <ApprovalInbox approvals={[pending]} onDecide={decide} />
      )}
    </AdkProvider>,
  )
  return decided
}

const describeCall = (_name: string, args: Readonly<Record<string, unknown>>): string =>
  `${String(args['recipient'])}に送金`
const button = (name: string): HTMLElement => screen.getByRole('button', { name })
const approveButton = (): HTMLElement =>
  screen.getByRole('button', { name: /^(Approve|承認|変更)/ })
const isDisabled = (): boolean => approveButton().getAttribute('aria-disabled') === 'true'
const headline = () => document.querySelector('.adk-call-description')?.textContent
const balance = () =>
  [...document.querySelectorAll('.adk-preview')]
    .filter((each) => !each.closest('.adk-outdated'))
    .map((each) => each.textContent)
    .join('')
const pause = () => act(() => vi.advanceTimersByTimeAsync(300))
const enter = async (name: string, text: string): Promise<void> => {
  await user.clear(screen.getByLabelText(name))
  await user.type(screen.getByLabelText(name), text)
}

describe.each<Place>(['card', 'inbox'])('an edited call in the %s', (place) => {
  test('[RE1101] the server is asked about the newest values, and the decision names what it said', async () => {
    const { api, asked } = createApi()
    const decided = show(place, { api })
    await user.click(button('Edit…'))
    expect(headline()).toBe('Send $70 to Carol')
    await enter('amount', '48')
    await pause()
    await user.type(screen.getByLabelText('amount'), '0')
    await enter('recipient', 'Mallory')
    expect(headline()).toBe('Payment with your changes')
    expect(balance()).toBe('')
    expect(isDisabled()).toBe(true)
    await pause()
    // An older response arrives late.
    const [older, newest] = [asked.at(-2), asked.at(-1)]
    expect(older?.signal?.aborted).toBe(true)
    await older?.respond()
    expect(isDisabled()).toBe(true)
    expect(screen.getByText('Checking your changes…')).toBeDefined()
    expect(newest?.args).toEqual({ amount: 480, recipient: 'Mallory' })
    await newest?.respond()
    expect(headline()).toBe('Send $480 to Mallory')
    expect(balance()).toContain('$520')
    expect(balance()).toContain('was $1,000 → $930')
    expect(document.body.textContent).toContain('Changed. Requested: Carol')
    await user.click(button('Approve: Send $480 to Mallory'))
    expect(decided).toEqual([
      { approved: true, args: { amount: 480, recipient: 'Mallory' }, preview: '480-Mallory' },
    ])
  })

  test('[RE1101] a refusal and a call that would fail cannot be approved, until the value is changed', async () => {
    const { api, asked } = createApi()
    const decided = show(place, { api })
    await user.click(button('Edit…'))
    await enter('recipient', 'Mallory')
    await pause()
    await asked.at(-1)?.respond(new AdkError('not-editable', 'No.'))
    expect(isDisabled()).toBe(true)
    expect(screen.getByText(/another person must approve too/)).toBeDefined()
    expect(headline()).toBe('Payment with your changes')
    await enter('recipient', 'Bob')
    expect(screen.queryByText(/another person must approve too/)).toBeNull()
    await pause()
    await asked
      .at(-1)
      ?.respond({ preview: toPreview(70, 'Bob', { blocked: 'Unknown recipient.' }) })
    await user.click(approveButton())
    expect(screen.getByText('Unknown recipient.')).toBeDefined()
    await enter('recipient', 'Dan')
    await pause()
    await asked.at(-1)?.respond({ hasPreview: true })
    await user.click(approveButton())
    expect(decided).toEqual([])
  })

  test('[RE1101] without an `api` nothing is shown about the old values', async () => {
    const decided = show(place)
    await user.click(button('Edit…'))
    await enter('recipient', 'Mallory')
    expect(headline()).toBe('Payment with your changes')
    expect(balance()).toBe('')
    await user.click(button('Approve with these changes'))
    expect(decided).toMatchObject([{ args: { recipient: 'Mallory' } }])
    await user.click(button('Back'))
    expect(headline()).toBe('Send $70 to Carol')
  })
})

test('[RE1101] an edited call of a higher severity is held', async () => {
  const { api, asked } = createApi()
  show('card', { api })
  await user.click(button('Edit…'))
  await enter('amount', '480')
  await pause()
  await asked.at(-1)?.respond({ preview: toPreview(480, 'Carol'), severity: 'high' })
  expect(screen.getByText('High risk')).toBeDefined()
  expect(approveButton().className).toContain('adk-hold')
})

test('[RE1101] a tool without a preview is approved with the changes, after the server has checked them', async () => {
  const { api, asked } = createApi()
  show('card', { api, labels: ja, describeCall })
  await user.click(button('編集…'))
  await enter('recipient', 'Mallory')
  expect(isDisabled()).toBe(true)
  await pause()
  await asked.at(-1)?.respond({})
  expect(headline()).toBe('Malloryに送金')
  expect(approveButton().textContent).toBe('承認：Malloryに送金')
})

test.each([
  ['en', 'Over 500, another person must approve. Enter 500 or less, or deny this and ask again.'],
  [
    'ja',
    '500を超える場合は、ほかの人の承認も必要です。500以下にするか、拒否して依頼し直してください。',
  ],
] as const)(
  '[RE367] the form knows what one person can approve alone (%s)',
  async (locale, text) => {
    const { api } = createApi()
    show('card', { api, labels: LANGUAGES[locale] })
    await user.click(button(locale === 'en' ? 'Edit…' : '編集…'))
    expect(document.body.textContent).toContain('500')
    await enter('amount', '501')
    await user.click(approveButton())
    expect(screen.getByText(text)).toBeDefined()
  },
)

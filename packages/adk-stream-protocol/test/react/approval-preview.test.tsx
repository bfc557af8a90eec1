import { act, fireEvent, render, screen, within } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import type { AdkUIMessage } from '../../src/client/index.ts'
import type { DataParts } from '../../src/protocol/message.ts'
import type { ShownPreview } from '../../src/protocol/preview.ts'
import { AdkProvider, type Decision, MessageList } from '../../src/react/index.ts'
import type { MessageListProps } from '../../src/react/components/message-list.tsx'
import type { AdkProviderProps } from '../../src/react/provider.tsx'
import { type Language, LANGUAGES } from './support/languages.ts'
import { answer, approvalPart, payment } from './support/messages.ts'

beforeEach(() => void vi.useFakeTimers({ shouldAdvanceTime: true }))
afterEach(() => void vi.useRealTimers())

type Settings = Partial<MessageListProps & AdkProviderProps> & { locale?: Language }

/** Renders one message and records the decisions. */
function show(message: AdkUIMessage, more: Settings = {}) {
  const decided: Decision[] = []
  const page = (shown: AdkUIMessage, { locale = 'en', describeCall, ...list }: Settings) => (
    <AdkProvider labels={LANGUAGES[locale]} describeCall={describeCall}>
      <MessageList
        {...list}
        messages={[shown]}
        onDecide={(_id, decision) => void decided.push(decision)}
      />
    </AdkProvider>
  )
  const view = render(page(message, more))
  return {
    decided,
    update: (shown: AdkUIMessage, other = more) => view.rerender(page(shown, other)),
  }
}

const user = userEvent.setup({ advanceTimers: (ms) => vi.advanceTimersByTime(ms) })
const card = (): HTMLElement => screen.getByRole('group', { name: /payment/i })
/** What describes a field, apart from its label. */
const help = (name: string): string | undefined =>
  document
    .getElementById(screen.getByLabelText(name).getAttribute('aria-describedby') ?? '')
    ?.textContent.trim()
const button = (name: string): HTMLElement => screen.getByRole('button', { name })

function balance(before: string, after: string): ShownPreview {
  return {
    headline: 'Send $50.00 to 花子',
    action: '$50.00',
    changes: [{ label: 'Balance', before, after }],
    lines: [{ label: 'For', value: 'Lunch' }],
    digest: `${before}-${after}`,
  }
}

const SEEN = balance('$1,000.00', '$950.00')
const pending = (preview: ShownPreview | undefined, data: Partial<DataParts['approval']> = {}) =>
  answer(payment(), approvalPart({ hasPreview: true, ...(preview && { preview }), ...data }))

const part = (id: string, value: number) => [
  payment({ toolCallId: `call-${id}`, approval: { id } }),
  approvalPart({
    approvalId: id,
    toolCallId: `call-${id}`,
    hasPreview: true,
    preview: { amount: { value, currency: 'USD', available: 1000 }, digest: id },
  }),
]
const sums = () => Array.from(document.querySelectorAll('.adk-sum'))
const high = () => show(answer(payment(), approvalPart({ severity: 'high' })))
const hold = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms))
const enter = async (name: string, text: string): Promise<void> => {
  await user.clear(screen.getByLabelText(name))
  if (text !== '') await user.type(screen.getByLabelText(name), text)
}
const describeCall = (_name: string, _args: object, phase: string) => `It is ${phase}.`

describe('previews', () => {
  test('[RE360] a card shows the preview, folds the arguments, and the decision names what was shown', async () => {
    const { decided } = show(
      pending({
        ...SEEN,
        text: { label: 'Note', before: 'one\ntwo', after: 'one\n2' },
        picture: { url: 'data:image/png;base64,AA==', alt: 'The invoice' },
      }),
    )
    expect(card().getAttribute('aria-label')).toBe('Payment: Send $50.00 to 花子')
    const [list] = card().querySelectorAll('dl')
    expect(list?.textContent).toBe('Balance$1,000.00 →becomes $950.00ForLunch')
    expect(card().querySelector('del')?.textContent).toBe('two')
    expect(card().querySelector('ins')?.textContent).toBe('2')
    expect(screen.getByAltText('The invoice')).toBeDefined()
    expect(card().querySelector('table')?.closest('details')?.open).toBe(false)
    await user.click(button('Approve $50.00'))
    expect(decided).toEqual([{ approved: true, preview: SEEN.digest }])
  })

  test('[RE360] an argument with look-alike letters is not folded', () => {
    const spoofed = payment({ input: { amount: 50, note: 'pаypal' } })
    show(answer(spoofed, approvalPart({ hasPreview: true, preview: SEEN })))
    expect(card().querySelector('table')?.closest('details')).toBeNull()
    expect(card().querySelector('table')?.textContent).toContain('look-alike')
  })

  test('[RE361] a change is marked with what the person saw, and needs a new decision', async () => {
    const { decided, update } = show(pending(SEEN))
    const now = balance('$550.00', '$500.00')
    const details = new Map([['approval-1', { preview: now }]])
    update(pending(SEEN), { details })
    const announced = screen.getAllByRole('status').map(({ textContent }) => textContent)
    expect(announced).toContain('This has changed since you looked. Check it before you approve.')
    expect(card().querySelector('[data-changed]')?.textContent).toBe(
      'Balance$550.00 →becomes $500.00was $1,000.00 → $950.00',
    )
    fireEvent.click(button('Approve $50.00'))
    expect(decided).toEqual([])
    await act(() => vi.advanceTimersByTimeAsync(500))
    fireEvent.click(button('Approve $50.00'))
    expect(decided).toEqual([{ approved: true, preview: now.digest }])
  })

  test.each([
    {
      name: 'a mouse that rests',
      pointerType: 'mouse',
      isMoved: false,
      detail: 1,
      isIgnored: true,
    },
    {
      name: 'a mouse that moves',
      pointerType: 'mouse',
      isMoved: true,
      detail: 1,
      isIgnored: false,
    },
    // A finger enters the button with each tap.
    { name: 'a finger', pointerType: 'touch', isMoved: false, detail: 1, isIgnored: false },
    { name: 'a key', pointerType: 'mouse', isMoved: false, detail: 0, isIgnored: false },
  ])('[RE931] a click when the button has come under the pointer, by $name', async (given) => {
    const { pointerType, isMoved, detail, isIgnored } = given
    const { decided } = show(pending(SEEN))
    fireEvent.pointerEnter(button('Approve $50.00'), { pointerType })
    if (isMoved) fireEvent.pointerMove(button('Approve $50.00'), { pointerType })
    fireEvent.click(button('Approve $50.00'), { detail })
    expect(decided).toHaveLength(isIgnored ? 0 : 1)
    if (!isIgnored) return
    await act(() => vi.advanceTimersByTimeAsync(500))
    fireEvent.click(button('Approve $50.00'), { detail })
    expect(decided).toHaveLength(1)
  })

  test('[RE361] the preview of a rejected approval is shown, also without an `api`', async () => {
    const { update } = show(pending(SEEN))
    const refusal = { code: 'preview-changed', message: 'It changed.', preview: balance('a', 'b') }
    update(pending(SEEN), { refusals: new Map([['approval-1', refusal]]) })
    expect(card().querySelector('[data-changed]')?.textContent).toContain('was $1,000.00 → $950.00')
    expect(screen.getAllByRole('alert')).toHaveLength(1)
  })

  test.each([
    {
      name: 'would fail',
      preview: { ...SEEN, blocked: 'Not enough money.' },
      why: 'Not enough money.',
    },
    {
      name: 'has no preview now',
      preview: undefined,
      why: /^The effect of this call cannot be determined right now/,
    },
  ])('[RE362] a call that $name can be denied, and not approved', async ({ preview, why }) => {
    const refreshed: string[] = []
    const { decided } = show(pending(preview), { onRefresh: (id) => void refreshed.push(id) })
    const approve = screen.getByRole('button', { name: /^Approve/, description: why })
    expect(approve.getAttribute('aria-disabled')).toBe('true')
    await user.click(approve)
    expect(decided).toEqual([])
    if (!preview) await user.click(button('Check again'))
    expect(refreshed).toEqual(preview ? [] : ['approval-1'])
    await user.click(button('Deny…'))
    await user.click(button('Deny'))
    expect(decided).toEqual([{ approved: false }])
  })

  test('[RE365] the cards of pending calls show their sum', () => {
    const { update } = show(answer(...part('a', 450), ...part('b', 0.1), ...part('c', 900.2)))
    expect(sums().map(({ textContent }) => textContent)).toEqual(
      Array.from({ length: 3 }, () => '3 pending: $1,350.30 of $1,000.00'),
    )
    expect(sums()[0]?.getAttribute('data-exceeded')).toBe('true')
    update(answer(...part('a', 450), ...part('b', 50)), { locale: 'ja' })
    expect(sums()[0]?.textContent).toBe('承認待ち2件：合計500.00ドル（利用可能額1,000.00ドル）')
    expect(sums()[0]?.getAttribute('data-exceeded')).toBe('false')
    update(answer(...part('a', 450)))
    expect(sums()).toEqual([])
  })
})

/** A finger leaves the button when it is lifted, before the click. Screen readers of phones send a tap, or only a click. */
const PRESSES = [
  { name: 'a short tap', pointerType: 'touch', pressMs: 60, detail: 1, leaves: true },
  { name: 'a long tap', pointerType: 'touch', pressMs: 200, detail: 1, leaves: true },
  { name: 'a pen', pointerType: 'pen', pressMs: 120, detail: 1, leaves: true },
  { name: 'a mouse', pointerType: 'mouse', pressMs: 120, detail: 1, leaves: false },
  { name: 'a screen reader that taps', pointerType: 'touch', pressMs: 0, detail: 1, leaves: true },
  {
    name: 'a screen reader that clicks as a pointer does',
    pointerType: undefined,
    pressMs: 0,
    detail: 1,
    leaves: false,
  },
  {
    name: 'a screen reader that clicks as a key does',
    pointerType: undefined,
    pressMs: 0,
    detail: 0,
    leaves: false,
  },
]

describe('high severity', () => {
  test('[RE363] holding the pointer approves, and letting go early does not', async () => {
    const { decided } = high()
    const approve = button('Approve')
    fireEvent.pointerDown(approve, { button: 0 })
    await hold(700)
    fireEvent.pointerLeave(approve, { buttons: 1 })
    await hold(500)
    expect(decided).toEqual([])
    fireEvent.pointerDown(approve, { button: 0 })
    await hold(800)
    fireEvent.click(approve, { detail: 1 })
    expect(decided).toEqual([{ approved: true }])
  })

  test.each(['Enter', ' '])('[RE363] holding the key "%s" approves', async (key) => {
    const { decided } = high()
    const approve = button('Approve')
    fireEvent.keyDown(approve, { key })
    fireEvent.keyDown(approve, { key, repeat: true })
    await hold(400)
    expect(decided).toEqual([])
    await hold(400)
    fireEvent.keyUp(approve, { key })
    expect(decided).toEqual([{ approved: true }])
  })

  test('[RE363] two presses approve, by pointer, by key and by a screen reader, and a double click does not', async () => {
    const { decided } = high()
    await user.dblClick(button('Approve'))
    expect(decided).toEqual([])
    const again = button('Wait a moment, then press again')
    await hold(600)
    await user.click(again)
    expect(decided).toHaveLength(1)
    // A screen reader sends clicks without a pointer.
    fireEvent.click(button('Approve'), { detail: 0 })
    expect(button('Press again to approve').getAttribute('data-press')).toBe('armed')
    await hold(600)
    fireEvent.click(button('Press again to approve'), { detail: 0 })
    expect(decided).toHaveLength(2)
    button('Approve').focus()
    await user.keyboard('{Enter}')
    expect(decided).toHaveLength(2)
    await hold(600)
    await user.keyboard('{Enter}')
    expect(decided).toHaveLength(3)
  })

  test.each(PRESSES)('[RE363] two presses approve, by $name, and one does not', async (given) => {
    const { pointerType, pressMs, detail, leaves } = given
    const { decided } = high()
    const press = async (): Promise<void> => {
      const approve = screen.getByRole('button', { name: /approve/i })
      const pointer = { pointerType, button: 0, isPrimary: true }
      if (pointerType !== undefined) {
        fireEvent.pointerDown(approve, { ...pointer, buttons: 1 })
        await hold(pressMs)
        fireEvent.pointerUp(approve, { ...pointer, buttons: 0 })
        if (leaves) fireEvent.pointerLeave(approve, { ...pointer, buttons: 0 })
      }
      // A browser may wait for a second tap before it clicks.
      await hold(300)
      fireEvent.click(approve, { detail })
    }
    await press()
    expect(decided).toEqual([])
    expect(button('Press again to approve').dataset['press']).toBe('armed')
    await hold(600)
    await press()
    expect(decided).toEqual([{ approved: true }])
  })

  test.each(['touch', 'pen'])('[RE363] holding approves once, by %s', async (pointerType) => {
    const { decided } = high()
    const approve = button('Approve')
    fireEvent.pointerDown(approve, { pointerType, button: 0, buttons: 1 })
    await hold(800)
    fireEvent.pointerUp(approve, { pointerType, buttons: 0 })
    fireEvent.pointerLeave(approve, { pointerType, buttons: 0 })
    fireEvent.click(approve, { detail: 1 })
    expect(decided).toEqual([{ approved: true }])
    expect(approve.dataset['press']).toBe('none')
  })

  test.each(['pointerLeave', 'pointerCancel'] as const)(
    '[RE363] a finger that leaves the button or scrolls approves nothing and forgets the first press, %s',
    async (end) => {
      const { decided } = high()
      await user.click(button('Approve'))
      await hold(600)
      const pointer = { pointerType: 'touch', button: 0, buttons: 1 }
      fireEvent.pointerDown(button('Press again to approve'), pointer)
      fireEvent[end](screen.getByRole('button', { name: /approve/i }), pointer)
      await hold(800)
      await user.click(button('Approve'))
      expect(decided).toEqual([])
    },
  )

  test('[RE363] a first press is forgotten after five seconds', async () => {
    const { decided } = high()
    await user.click(button('Approve'))
    await hold(5_000)
    await user.click(button('Approve'))
    expect(decided).toEqual([])
  })

  test('[RE363] edited arguments are held too, and Enter in a field only checks the form', async () => {
    const { decided } = high()
    await user.click(button('Edit…'))
    await user.type(screen.getByLabelText('amount'), '{Enter}')
    expect(decided).toEqual([])
    fireEvent.pointerDown(button('Approve with these changes'), { button: 0 })
    await hold(800)
    expect(decided).toMatchObject([{ approved: true, args: { amount: 50 } }])
  })

  test('[RE364] each severity has a shape, a text and a colour of its own', () => {
    const { update } = show(answer(payment(), approvalPart({ severity: 'low' })))
    const shown = (['low', 'medium', 'high'] as const).map((severity) => {
      update(answer(payment(), approvalPart({ severity })))
      const mark = card().querySelector('.adk-severity')
      expect(card().dataset['severity']).toBe(severity)
      return [mark?.querySelector('path')?.getAttribute('d'), mark?.textContent]
    })
    expect(new Set(shown.flat()).size).toBe(6)
  })
})

describe('receipts', () => {
  const at = Date.now()
  const done = (data: Partial<DataParts['approval']>, output: unknown = { success: true }) =>
    answer(
      payment({
        state: 'output-available',
        output,
        approval: { id: 'approval-1', approved: true },
      }),
      approvalPart({ state: 'approved', at, by: { own: true, others: [] }, ...data }),
    )

  test('[RE366] a call that succeeded is a receipt: what happened, who approved, when', () => {
    show(
      done({
        outcome: 'succeeded',
        receipt: {
          headline: 'Sent $50.00 to 花子',
          lines: [{ label: 'Transaction', value: 'txn_1' }],
          changes: [{ label: 'Balance', before: '$1,000.00', after: '$950.00' }],
        },
      }),
    )
    expect(card().querySelector('.adk-call-description')?.textContent).toBe('Sent $50.00 to 花子')
    const time = within(card()).getByRole('time')
    expect(time.getAttribute('datetime')).toBe(new Date(at).toISOString())
    expect(time.parentElement?.textContent).toMatch(/^By you · \d/)
    expect(card().textContent).toContain('Transactiontxn_1')
    expect(card().dataset['phase']).toBe('succeeded')
  })

  test.each([
    [{ own: true, others: ['taro'] }, 'By you and 1 other person'],
    [{ own: false, others: ['taro'] }, 'By another person'],
    [{ own: false, others: ['taro', 'mari'] }, 'By 2 other people'],
  ])('[RE366] people who approved: %j', (by, text) => {
    show(done({ by }))
    expect(card().querySelector('.adk-decided-by')?.textContent).toContain(text)
  })

  test('[RE366] the page describes a call in each phase', () => {
    const { update } = show(pending(SEEN), { describeCall })
    const headline = () => card().querySelector('.adk-call-description')?.textContent
    expect(headline()).toBe('It is pending.')
    update(done({ outcome: 'succeeded' }))
    expect(headline()).toBe('It is succeeded.')
    // The server judged the result by the policy of the application.
    update(done({ outcome: 'failed' }))
    expect(headline()).toBe('It is failed.')
    expect(card().dataset['failed']).toBe('true')
    expect(card().textContent).toContain('Approved, but it failed.')
    update(done({ outcome: 'succeeded' }, { success: false, error: 'Was paid before.' }))
    expect(headline()).toBe('It is succeeded.')
    update(done({}, { success: false, error: 'No money.' }))
    expect(headline()).toBe('It is failed.')
    for (const state of ['denied', 'expired', 'cancelled', 'unknown'] as const) {
      update(answer(payment({ state: 'output-error', errorText: 'x' }), approvalPart({ state })))
      expect(headline()).toBe(`It is ${state}.`)
    }
  })
})

describe('editing by schema', () => {
  const argsSchema = {
    type: 'object',
    properties: {
      amount: { type: 'number', exclusiveMinimum: 0, maximum: 500, multipleOf: 0.01 },
      recipient: { type: 'string', minLength: 1, maxLength: 10 },
      currency: { type: 'string', enum: ['USD', 'JPY'], default: 'USD' },
      due: { type: 'string', format: 'date' },
      urgent: { type: 'boolean' },
    },
    required: ['amount', 'recipient'],
  }
  const details = new Map([['approval-1', { argsSchema }]])
  const call = payment({ input: { amount: 50, recipient: 'Hanako', urgent: false } })
  const edit = async (locale: Language = 'en') => {
    const shown = show(answer(call, approvalPart()), { details, locale })
    await user.click(button(locale === 'en' ? 'Edit…' : '編集…'))
    return shown
  }

  test('[RE367] fields follow the schema, and the types of the values are kept', async () => {
    const { decided } = await edit()
    expect(within(screen.getByLabelText('currency')).getAllByRole('option')).toHaveLength(2)
    expect(screen.getByLabelText<HTMLInputElement>('due').type).toBe('date')
    await user.selectOptions(screen.getByLabelText('currency'), 'JPY')
    await user.click(screen.getByLabelText('urgent'))
    await enter('amount', '１２．５')
    await user.click(button('Approve with these changes'))
    expect(decided).toEqual([
      {
        approved: true,
        args: { amount: 12.5, recipient: 'Hanako', currency: 'JPY', urgent: true },
      },
    ])
  })

  test.each([
    ['amount', '0', 'Enter more than 0.', '0より大きい数値を入力してください。'],
    ['amount', '1,000', 'Enter 500 or less.', '500以下を入力してください。'],
    ['amount', '1.234', 'Enter a multiple of 0.01.', '0.01の倍数を入力してください。'],
    ['amount', 'many', 'Enter a number.', '数値を入力してください。'],
    ['recipient', '', 'Enter a value.', '入力してください。'],
    ['recipient', 'Bartholomew', 'Enter at most 10 characters.', '10文字以内で入力してください。'],
  ])('[RE367] %s "%s" is explained at its field, in both languages', async (name, text, en, ja) => {
    for (const [locale, message] of [
      ['en', en],
      ['ja', ja],
    ] as const) {
      const { decided } = await edit(locale)
      await enter(name, text)
      await user.click(button(locale === 'en' ? 'Approve with these changes' : '変更して承認'))
      expect(decided).toEqual([])
      const field = screen.getByLabelText(name)
      expect(screen.getByRole('alert').textContent).toBe(message)
      expect(document.activeElement).toBe(field)
      expect(field.getAttribute('aria-describedby')).toBe(screen.getByRole('alert').id)
      document.body.replaceChildren()
    }
  })

  test('[RE367] each invalid field has its own message', async () => {
    await edit()
    await enter('amount', '-1')
    await enter('recipient', '')
    await user.click(button('Approve with these changes'))
    expect(screen.getAllByRole('alert')).toHaveLength(2)
    expect(document.activeElement).toBe(screen.getByLabelText('amount'))
    await enter('amount', '5')
    expect(screen.getAllByRole('alert')).toHaveLength(1)
  })

  test.each([
    ['en', 'From 0.01 to 970.', 'Only 970 is available.', 'Enter a multiple of 0.01.'],
    ['ja', '0.01〜970', '利用できるのは970までです。', '0.01の倍数を入力してください。'],
  ] as const)(
    '[RE367] the amount of the preview is limited to what is available, in %s',
    async (locale, limits, tooMuch, tooFine) => {
      const schema = {
        type: 'object',
        properties: {
          amount: { type: 'number', minimum: 0.01 },
          priority: { type: 'integer', maximum: 9 },
        },
      }
      const available = (left: number) => ({
        argsSchema: schema,
        preview: { digest: String(left), amount: { value: 50, currency: 'USD', available: left } },
      })
      const message = answer(payment({ input: { amount: 50, priority: 1 } }), approvalPart())
      const shows = (left: number) => ({
        locale,
        details: new Map([['approval-1', available(left)]]),
      })
      const { decided, update } = show(message, shows(1000))
      await user.click(button(locale === 'en' ? 'Edit…' : '編集…'))
      // A payment elsewhere while the form is open.
      update(message, shows(970))
      expect(help('amount')).toBe(limits)
      expect(help('priority')).toBe(locale === 'en' ? '9 or less.' : '9以下')
      for (const [text, problem] of [
        ['970.01', tooMuch],
        ['1.234', tooFine],
      ] as const) {
        await enter('amount', text)
        await user.click(button(locale === 'en' ? 'Approve with these changes' : '変更して承認'))
        expect(screen.getByRole('alert').textContent).toBe(problem)
      }
      expect(decided).toEqual([])
    },
  )

  test('[RE368] Escape keeps what was typed, in the form and in the reason', async () => {
    await edit()
    await enter('recipient', 'Taro')
    await user.keyboard('{Escape}')
    await user.click(button('Deny…'))
    await user.type(screen.getByLabelText('Reason (optional)'), 'Too much')
    await user.keyboard('{Escape}')
    await user.click(button('Edit…'))
    expect(screen.getByLabelText<HTMLInputElement>('recipient').value).toBe('Taro')
    await user.keyboard('{Escape}')
    await user.click(button('Deny…'))
    expect(screen.getByLabelText<HTMLInputElement>('Reason (optional)').value).toBe('Too much')
  })

  test('[RE368] what was typed is still shown after the approval has expired', async () => {
    const { update } = await edit()
    await enter('recipient', 'Taro')
    const { input } = call
    const expired = payment({ input, state: 'output-error', errorText: 'Expired.' })
    update(answer(expired, approvalPart({ state: 'expired' })))
    const unsent = card().querySelector('.adk-unsent')
    expect(unsent?.textContent).toContain('You had entered this. It was not sent.')
    expect(unsent?.querySelector('[data-changed="true"]')?.textContent).toBe('recipientHanakoTaro')
  })
})

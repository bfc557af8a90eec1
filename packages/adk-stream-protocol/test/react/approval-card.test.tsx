import { act, fireEvent, render, screen, within } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { afterEach, describe, expect, test, vi } from 'vitest'

import { createHttp } from '../../src/client/api/http.ts'
import type { AdkUIMessage } from '../../src/client/index.ts'
import { AdkProvider, type Decision, MessageList } from '../../src/react/index.ts'
import { type Language, LANGUAGES } from './support/languages.ts'
import { answer, payment, approvalPart } from './support/messages.ts'
import type { AdkProviderProps } from '../../src/react/provider.tsx'
import type { MessageListProps } from '../../src/react/components/message-list.tsx'

afterEach(() => void vi.useRealTimers())

type Settings = Partial<MessageListProps & AdkProviderProps> & { locale?: Language }

/** Renders one message and records the decisions. */
function show(message: AdkUIMessage, more: Settings = {}) {
  const decided: [approvalId: string, decision: Decision][] = []
  const page = (shown: AdkUIMessage, other = more) => (
    <AdkProvider
      labels={LANGUAGES[other.locale ?? 'en']}
      describeCall={other.describeCall}
      time={other.time}
    >
      <MessageList
        messages={[shown]}
        onDecide={(id, decision) => void decided.push([id, decision])}
        {...(other.refusals && { refusals: other.refusals })}
        {...(other.votes && { votes: other.votes })}
        {...(other.details && { details: other.details })}
        onRefresh={other.onRefresh}
        {...(other.unconfirmed && { unconfirmed: other.unconfirmed })}
        isConnected={other.isConnected ?? true}
      />
    </AdkProvider>
  )
  const view = render(page(message))
  return {
    decided,
    update: (shown: AdkUIMessage, other = more) => view.rerender(page(shown, other)),
  }
}

const user = userEvent.setup()
const counted = (voted: boolean) => ({ votes: new Map([['approval-1', { given: 1, voted }]]) })
const button = (name: string): HTMLElement => screen.getByRole('button', { name })
const card = (): HTMLElement => screen.getByRole('group', { name: /payment/i })
/** The sentences that are read out when they change. */
const announced = (): string[] =>
  screen.getAllByRole('status').map(({ textContent }) => textContent)

/** Presses Enter and repeats it once, with what a browser then does: it clicks a button, or submits the form of an input. */
async function holdEnter(): Promise<void> {
  await user.keyboard('{Enter>}')
  const { activeElement } = document
  if (activeElement && fireEvent.keyDown(activeElement, { key: 'Enter', repeat: true })) {
    if (activeElement.matches('input')) activeElement.closest('form')?.requestSubmit()
    else fireEvent.click(activeElement)
  }
  await user.keyboard('{/Enter}')
}

/** Receives a response of a server whose clock shows this time. */
function ask(time: number): Promise<Response> {
  const fetch = async () => Response.json([], { headers: { date: new Date(time).toUTCString() } })
  return createHttp({ url: 'http://server', fetch }).send('/approvals')
}

const pay = (_name: string, args: Readonly<Record<string, unknown>>) =>
  `Send ${String(args['amount'])} to ${String(args['recipient'])}`

describe('a pending approval', () => {
  test('[RE13] a card shows the description, the arguments, the hint, the severity and the time left', () => {
    show(answer(payment(), approvalPart()), {
      describeCall: (name, args) =>
        name === 'process_payment' ? `Pay ${String(args['amount'])}` : undefined,
    })
    expect(card().getAttribute('aria-label')).toBe('Payment: Pay 50')
    expect(card().textContent).toContain('Money leaves the account.')
    expect(card().textContent).toContain('Medium risk')
    expect(screen.getByRole('timer').textContent).toMatch(/^1:(?:30|29)$/)
    const rows = within(screen.getAllByRole('table').at(-1) ?? card()).getAllByRole('row')
    expect(rows.map(({ textContent }) => textContent)).toContain('recipient花子')
    expect(announced()).toContain('Waiting for your decision.')
  })

  test.each([
    ['en', 'Called by:'],
    ['ja', '呼び出し元：'],
  ] as const)('[RE400] a card shows the agents that lead to its call, in %s', (locale, label) => {
    show(answer(payment(), approvalPart({ path: ['Planner', 'Travel agent'] })), { locale })
    const path = card().querySelector('.adk-path')?.textContent
    expect(path).toBe(`${label} Planner › Travel agent › Process payment`)
  })

  test('[RE400] the card of any other call shows no path', () => {
    show(answer(payment(), approvalPart()))
    expect(card().querySelector('.adk-path')).toBeNull()
  })

  test.each([true, false])(
    '[RE162] a card does not say that a call is running before its decision is confirmed, connected: %s',
    (isConnected) => {
      const approval = { id: 'approval-1', approved: true }
      show(answer(payment({ state: 'approval-responded', approval }), approvalPart()), {
        unconfirmed: new Set(['approval-1']),
        isConnected,
      })
      expect(card().textContent).toContain('Waiting')
      expect(card().textContent).not.toContain('Running')
    },
  )

  test('[RE633] a vote that was not sent says that the browser is offline, until it is online again', () => {
    const online = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false)
    const refusals = new Map([['approval-1', { code: 'unavailable', message: 'No network.' }]])
    show(answer(payment(), approvalPart({ approvers: 2 })), { refusals })
    expect(screen.getByRole('alert').textContent).toBe(
      'Not sent: you are offline. Send it again when the connection is back.',
    )
    expect(screen.queryByRole('button', { name: 'Approve' })).not.toBeNull()
    online.mockReturnValue(true)
    act(() => void window.dispatchEvent(new window.Event('online')))
    expect(screen.getByRole('alert').textContent).toBe(
      'The server cannot be reached. Try again in a moment.',
    )
    online.mockRestore()
  })

  test('[RE13] a double click approves once', async () => {
    const { decided, update } = show(answer(payment(), approvalPart()))
    await user.dblClick(button('Approve'))
    expect(decided).toEqual([['approval-1', { approved: true }]])
    update(
      answer(
        payment({ state: 'approval-responded', approval: { id: 'approval-1', approved: true } }),
        approvalPart(),
      ),
    )
    expect(screen.queryByRole('button', { name: 'Approve' })).toBeNull()
    expect(announced()).toContain('Approved. Running…')
    expect(document.activeElement?.textContent).toBe('Approved. Running…')
  })

  test('[RE13] denying takes an optional reason', async () => {
    const { decided } = show(answer(payment(), approvalPart()))
    await user.click(button('Deny…'))
    expect(document.activeElement).toBe(screen.getByLabelText('Reason (optional)'))
    await user.click(button('Deny'))
    await user.type(screen.getByLabelText('Reason (optional)'), '  too much {Enter}')
    expect(decided.map(([, decision]) => decision)).toEqual([
      { approved: false },
      { approved: false, reason: 'too much' },
    ])
  })

  test('[RE13] edited arguments keep their types: numbers, booleans, structures', async () => {
    const { decided } = show(answer(payment(), approvalPart()))
    await user.click(button('Edit…'))
    const amount = screen.getByLabelText('amount')
    expect(document.activeElement).toBe(amount)
    await user.clear(amount)
    await user.type(amount, '30.5')
    await user.click(screen.getByLabelText('urgent'))
    await user.clear(screen.getByLabelText('lines'))
    await user.type(screen.getByLabelText('lines'), '[[{{"sku":"B2"}]')
    await user.click(button('Approve with these changes'))
    expect(decided).toEqual([
      [
        'approval-1',
        {
          approved: true,
          args: { amount: 30.5, recipient: '花子', urgent: true, lines: [{ sku: 'B2' }] },
        },
      ],
    ])
  })

  test.each([
    { field: 'amount', typed: 'many', problem: 'Enter a number.' },
    { field: 'amount', typed: ' ', problem: 'Enter a number.' },
    { field: 'lines', typed: 'x', problem: 'This is not valid JSON.' },
  ])('[RE13] $field "$typed" is not sent, and the field says why', async (given) => {
    const { decided } = show(answer(payment(), approvalPart()))
    await user.click(button('Edit…'))
    const field = screen.getByLabelText(given.field)
    await user.clear(field)
    await user.type(field, given.typed)
    await user.click(button('Approve with these changes'))
    expect(decided).toEqual([])
    expect(screen.getByRole('alert').textContent).toBe(given.problem)
    expect(field.getAttribute('aria-invalid')).toBe('true')
  })
})

describe('exact content', () => {
  const spoofed = payment({ input: { amount: 12.345, recipient: '\u202Eecila', note: 'pаypal' } })

  test('[RE160] direction marks and look-alike letters are shown in the headline, the label and the table', () => {
    show(answer(spoofed, approvalPart({ hint: 'To \u202Eecila.' })), { describeCall: pay })
    expect(card().getAttribute('aria-label')).toBe('Payment: Send 12.345 to “⟨U+202E⟩ecila”')
    expect(card().querySelector('.adk-call-description')?.textContent).toBe(
      'Send 12.345 to ⟨U+202E⟩ecila',
    )
    expect(card().querySelector('.adk-hint')?.textContent).toBe('To ⟨U+202E⟩ecila.')
    const rows = within(screen.getAllByRole('table').at(-1) ?? card()).getAllByRole('row')
    expect(rows.map(({ textContent }) => textContent)).toContain('recipient⟨U+202E⟩ecila')
    expect(rows.at(-1)?.textContent).toContain(
      '“pа⟨U+0430⟩ypal” has look-alike letters: а is Cyrillic.',
    )
    expect(card().textContent).not.toContain('\u202E')
    expect(rows.at(-1)?.querySelector('bdi')).not.toBeNull()
  })

  test('[RE160] the edit form shows the exact value', async () => {
    show(answer(spoofed, approvalPart()))
    await user.click(button('Edit…'))
    expect(card().textContent).toContain('⟨U+202E⟩ecila')
  })

  test('[RE160] a result shows hidden characters too', () => {
    show(answer({ ...spoofed, state: 'output-available', output: 'a\u200Bb' } as typeof spoofed))
    expect(card().textContent).toContain('a⟨U+200B⟩b')
  })
})

describe('the outcome', () => {
  test('[RE13] the edited arguments are shown next to the requested ones', () => {
    const editedArgs = { amount: 30, recipient: '花子', urgent: false }
    show(
      answer(
        payment({
          state: 'output-available',
          output: { success: true },
          approval: { id: 'approval-1', approved: true },
        }),
        approvalPart({ state: 'approved', editedArgs }),
      ),
    )
    const changed = [...card().querySelectorAll('tr[data-changed="true"]')]
    expect(changed.map(({ textContent }) => textContent)).toEqual([
      'amount5030',
      expect.any(String),
    ])
    expect(announced()).toEqual(['Approved.'])
    expect(card().textContent).toContain('"success": true')
  })

  test.each([
    { state: 'expired', says: 'Expired: nobody decided in time. Nothing was done.' },
    { state: 'cancelled', says: 'Cancelled. Nothing was done. Reason: The chat was deleted.' },
    {
      state: 'unknown',
      says: 'Unknown: it may or may not have run. Check before you try again.',
    },
    { state: 'denied', says: 'Denied. Nothing was done. Reason: The chat was deleted.' },
  ] as const)('[RE13] $state is said so, and can no longer be decided', ({ state, says }) => {
    show(
      answer(
        payment({ state: 'output-error', errorText: 'x' }),
        approvalPart({ state, reason: 'The chat was deleted.' }),
      ),
    )
    expect(announced()).toEqual([says])
    expect(screen.queryAllByRole('button')).toEqual([])
  })

  test.each([
    { output: { success: false, error: 'Insufficient funds.' }, reason: 'Insufficient funds.' },
    { output: { status: 'error', error_message: 'No such account.' }, reason: 'No such account.' },
    { output: { success: false }, reason: undefined },
  ])('[RE161] a call whose result reports a failure is not shown as done: $output', (ended) => {
    const { output, reason } = ended
    const approval = { id: 'approval-1', approved: true as const }
    show(
      answer(
        payment({ state: 'output-available', output, approval }),
        approvalPart({ state: 'approved' }),
      ),
    )
    expect(announced()).toEqual(['Approved, but it failed.'])
    expect(card().dataset['failed']).toBe('true')
    expect(card().querySelector('.adk-tool-state')?.textContent).toBe('Failed')
    expect(card().querySelector('.adk-failure')?.textContent).toBe(reason)
  })

  test('[RE161] a call that needs no approval is shown as failed by the same rule', () => {
    const output = { success: false, error: 'Insufficient funds.' }
    show(
      answer({
        type: 'dynamic-tool',
        toolName: 'process_payment',
        toolCallId: 'call-1',
        state: 'output-available',
        input: {},
        output,
      }),
    )
    expect(card().textContent).toContain('Failed')
    expect(card().textContent).toContain('Insufficient funds.')
    expect(card().textContent).not.toContain('Done')
  })

  test('[RE162] a decision counts as made when the server has confirmed it', () => {
    const approval = { id: 'approval-1', approved: true as const }
    const message = answer(payment({ state: 'approval-responded', approval }), approvalPart())
    const unconfirmed = new Set(['approval-1'])
    const page = show(message, { unconfirmed })
    expect(announced()).toEqual(['Sending your decision…'])
    page.update(message, { unconfirmed, isConnected: false })
    expect(announced()).toEqual([
      'Your approval will be sent when the connection is back. Nothing has run yet.',
    ])
    const denial = { id: 'approval-1', approved: false as const }
    const denied = payment({ state: 'approval-responded', approval: denial })
    page.update(answer(denied, approvalPart()), { unconfirmed, isConnected: false })
    expect(announced()).toEqual([
      'Your denial will be sent when the connection is back. Nothing has run yet.',
    ])
    page.update(message, {})
    expect(announced()).toEqual(['Approved. Running…'])
  })

  test('[RE6] the card shows a refusal in the person’s language and keeps the typed input', async () => {
    const page = show(answer(payment(), approvalPart()))
    await user.click(button('Edit…'))
    await user.type(screen.getByLabelText('amount'), '0')
    const refusals = new Map([['approval-1', { code: 'not-editable', message: 'No.' }]])
    page.update(answer(payment(), approvalPart()), { refusals, locale: 'ja' })
    expect(screen.getByRole('alert').textContent).toContain('ほかの人の承認')
    expect(screen.getByLabelText('amount')).toHaveProperty('value', '500')
  })

  test('[RE6] a refusal is shown while the chat still shows the decision, and nothing claims that it was accepted', () => {
    const refusals = new Map([['approval-1', { code: 'approval-decided', message: 'Too late.' }]])
    const approval = { id: 'approval-1', approved: false as const }
    const page = show(answer(payment({ state: 'approval-responded', approval }), approvalPart()))
    expect(announced()).toEqual(['Denied. Informing the assistant…'])
    expect(card().querySelector('.adk-tool-state')?.textContent).toBe('Denied')
    page.update(answer(payment({ state: 'approval-responded', approval }), approvalPart()), {
      refusals,
    })
    expect(screen.getByRole('alert').textContent).toBe('Too late.')
    expect(announced()).toEqual(['Your decision was not accepted.'])
    page.update(
      answer(
        payment({ state: 'output-available', output: {} }),
        approvalPart({ state: 'approved' }),
      ),
      { refusals },
    )
    expect(screen.getByRole('alert').textContent).toBe('Too late.')
    expect(announced()).toEqual(['Approved.'])
  })

  test('[RE13] an approval of several people says how many are missing, and cannot be edited', () => {
    const page = show(answer(payment(), approvalPart({ approvers: 2 })))
    expect(card().textContent).toContain('Needs approval from 2 people.')
    expect(screen.queryByRole('button', { name: 'Edit…' })).toBeNull()
    page.update(answer(payment(), approvalPart({ approvers: 2 })), counted(false))
    expect(card().textContent).toContain('1 of 2 people have approved.')
    expect(button('Approve')).toBeDefined()
    page.update(answer(payment(), approvalPart({ approvers: 2 })), counted(true))
    expect(card().textContent).toContain('You approved this (1 of 2).')
    expect(screen.queryByRole('button', { name: 'Approve' })).toBeNull()
  })
})

describe('an approval that a message decided', () => {
  const reply = { words: 'yes,\u202E send it', channel: 'typed' as const }
  const parts = [
    payment({
      state: 'output-available',
      output: {},
      approval: { id: 'approval-1', approved: true },
    }),
    approvalPart({ state: 'approved', by: { own: true, others: [] }, reply }),
  ] as const
  const decision = {
    type: 'data-decision' as const,
    data: { approvalId: 'approval-1', toolCallId: 'call-1', approved: true },
  }

  test.each([
    ['en', 'Understood from: “yes,⟨U+202E⟩ send it”', 'Approved by your message.'],
    ['ja', '判断のもとになった言葉：「yes,⟨U+202E⟩ send it」', 'メッセージにより承認しました。'],
  ] as const)('[RE510] in %s the card shows the words, as they are', (locale, words, line) => {
    const { update } = show(answer(...parts), { locale })
    expect(card().textContent).toContain(words)
    update(answer(decision), { locale })
    expect(document.body.textContent).toContain(line)
  })

  test('[RE510] a pending card, and one that was decided in the form, show none', () => {
    const { update } = show(answer(payment(), approvalPart()))
    expect(document.querySelector('.adk-understood')).toBeNull()
    update(answer(parts[0], approvalPart({ state: 'approved' })))
    expect(document.querySelector('.adk-understood')).toBeNull()
  })
})

test('[RE367] [RE368] a form that was opened before its schema has arrived gets the fields of the schema, and keeps what was typed', async () => {
  const onRefresh = vi.fn()
  const message = answer(payment({ input: { amount: 50, currency: 'USD' } }), approvalPart())
  const { update, decided } = show(message, { onRefresh })
  await user.click(button('Edit…'))
  // The schema may have been lost with the response of the server.
  expect(onRefresh).toHaveBeenCalledExactlyOnceWith('approval-1')
  await user.clear(screen.getByLabelText('amount'))
  await user.type(screen.getByLabelText('amount'), '70')
  expect(screen.getByLabelText('currency').tagName).toBe('INPUT')
  const properties = {
    amount: { type: 'number', minimum: 1, maximum: 60 },
    currency: { enum: ['USD', 'EUR'] },
  }
  const argsSchema = { type: 'object', properties, required: ['amount', 'currency'] }
  update(message, { onRefresh, details: new Map([['approval-1', { argsSchema }]]) })
  expect(screen.getByLabelText('currency').tagName).toBe('SELECT')
  const amount = screen.getByLabelText<HTMLInputElement>('amount')
  expect([amount.value, document.activeElement === amount]).toEqual(['70', true])
  await user.keyboard('{Enter}')
  expect(screen.getByRole('alert').textContent).toContain('60')
  expect(decided).toEqual([])
  await user.clear(amount)
  await user.type(amount, '55{Enter}')
  expect(decided).toEqual([
    ['approval-1', { approved: true, args: { amount: 55, currency: 'USD' } }],
  ])
})

describe('an approval of the AI SDK alone', () => {
  test('[RE8] is decided by the same card, without editing', async () => {
    const { decided, update } = show(answer(payment()))
    expect(screen.queryByRole('button', { name: 'Edit…' })).toBeNull()
    await user.click(button('Approve'))
    expect(decided).toEqual([['approval-1', { approved: true }]])
    const approval = { id: 'approval-1', approved: false as const, reason: 'No.' }
    update(answer(payment({ state: 'output-denied', approval })))
    expect(announced()).toEqual(['Denied. Nothing was done. Reason: No.'])
  })

  // The AI SDK sends the decisions about the calls of a message together.
  test.each([
    ['en', false, 'Denied', 'Denied. It will not be done. The assistant is told when everything'],
    ['en', true, 'Waiting', 'Approved. It starts when everything else is decided.'],
    ['ja', false, '拒否', '拒否しました。実行されません。'],
    ['ja', true, '待機中', '承認しました。残りもすべて判断されると、実行されます。'],
  ] as const)(
    '[RE8] [RE162] in %s, a call that is decided (%s) before another one does not say that it runs',
    (locale, approved, header, status) => {
      const decided = payment({
        state: 'approval-responded',
        approval: { id: 'approval-1', approved },
      })
      const sibling = payment({ toolCallId: 'call-2', approval: { id: 'approval-2' } })
      const { update } = show(answer(decided, sibling), { locale })
      const [shown] = document.querySelectorAll('.adk-approval')
      expect(shown?.querySelector('.adk-tool-state')?.textContent).toContain(header)
      expect(shown?.querySelector('.adk-ending [role=status]')?.textContent).toContain(status)
      expect(shown?.textContent).not.toMatch(/Running|Informing|実行しています|伝えています/)
      update(answer(decided), { locale })
      expect(shown?.textContent).toMatch(/Running|Informing|実行しています|伝えています/)
    },
  )
})

describe('keys', () => {
  test('[RE14] only while the focus is in the card, and none of them decides by itself', async () => {
    const { decided } = show(answer(payment(), approvalPart()))
    await user.keyboard('ade')
    expect(screen.queryByLabelText('Reason (optional)')).toBeNull()
    act(() => card().focus())
    await user.keyboard('a')
    expect(document.activeElement).toBe(button('Approve'))
    await user.keyboard('aA')
    expect(decided).toEqual([])
    await user.keyboard('{Enter}')
    expect(decided).toEqual([['approval-1', { approved: true }]])
  })

  test('[RE14] a form takes letters as letters, Escape leaves it, the focus goes back', async () => {
    const { decided } = show(answer(payment(), approvalPart()))
    act(() => card().focus())
    await user.keyboard('d')
    await user.keyboard('a bad idea')
    expect(screen.getByLabelText('Reason (optional)')).toHaveProperty('value', 'a bad idea')
    await user.keyboard('{Escape}')
    expect(document.activeElement).toBe(button('Deny…'))
    await user.keyboard('e')
    expect(document.activeElement).toBe(screen.getByLabelText('amount'))
    await user.keyboard('{Escape}')
    expect(document.activeElement).toBe(button('Edit…'))
    expect(decided).toEqual([])
  })
})

test('[RE883] a refusal is announced once, also if the approval ends meanwhile', () => {
  const refusals = new Map([['approval-1', { code: 'approval-decided', message: 'Too late.' }]])
  const approval = { id: 'approval-1', approved: true } as const
  const { update } = show(
    answer(payment({ state: 'approval-responded', approval }), approvalPart()),
    { refusals },
  )
  const alert = screen.getByRole('alert')
  update(
    answer(
      payment({ state: 'output-available', output: {}, approval }),
      approvalPart({ state: 'approved' }),
    ),
  )
  expect(screen.getByRole('alert')).toBe(alert)
})

describe('a held Enter key', () => {
  test.each(['Deny…', 'Edit…'])(
    '[RE880] that opened a form with “%s” does not send it',
    async (name) => {
      const { decided } = show(answer(payment(), approvalPart()))
      act(() => button(name).focus())
      await holdEnter()
      expect(document.activeElement?.tagName).toBe('INPUT')
      expect(decided).toEqual([])
      await user.keyboard('{Enter}')
      expect(decided).toHaveLength(1)
    },
  )

  test('[RE880] that moved the focus to the approve button does not approve', async () => {
    const { decided } = show(answer(payment(), approvalPart()))
    const approve = button('Approve')
    const showCard = document.body.appendChild(document.createElement('button'))
    showCard.addEventListener('click', () => approve.focus())
    showCard.focus()
    await holdEnter()
    showCard.remove()
    expect(document.activeElement).toBe(approve)
    expect(decided).toEqual([])
  })
})

test('[RE370] Escape and Enter of an input method neither close the form of a denial nor decide', async () => {
  const { decided } = show(answer(payment(), approvalPart()))
  await user.click(button('Deny…'))
  const reason = screen.getByLabelText('Reason (optional)')
  // Safari ends the composition before it reports the key: only the key code shows it.
  for (const composing of [{ isComposing: true }, { keyCode: 229 }])
    for (const key of ['Escape', 'Enter']) fireEvent.keyDown(reason, { key, ...composing })
  expect(document.contains(reason)).toBe(true)
  expect(decided).toEqual([])
})

describe('time', () => {
  test('[RE15] a clock that runs ahead takes no decision away', async () => {
    const { decided, update } = show(
      answer(payment(), approvalPart({ deadline: Date.now() - 600_000 })),
    )
    expect(announced()).toContain('According to the clock of this device, the deadline has passed.')
    await user.click(button('Approve'))
    expect(decided).toEqual([['approval-1', { approved: true }]])
    update(answer(payment(), approvalPart({ deadline: Date.now() + 60_000 })))
    expect(announced()).toContain('Waiting for your decision.')
    update(
      answer(
        payment({ state: 'output-error', errorText: 'x' }),
        approvalPart({ state: 'expired' }),
      ),
    )
    expect(screen.queryAllByRole('button')).toEqual([])
  })

  test.each([
    ['behind', 3_600_000],
    ['ahead of', -3_600_000],
  ])(
    '[RE7] a device whose clock is an hour %s the server shows the time that is left',
    async (_name, offset) => {
      const serverTime = Date.now() + offset
      await ask(serverTime)
      show(answer(payment(), approvalPart({ deadline: serverTime + 90_000 })))
      expect(screen.getByRole('timer').textContent).toMatch(/^1:(?:31|30|29|28|27)$/)
      await ask(Date.now())
    },
  )

  test('[RE15] it counts down, is spoken at one minute and at ten seconds; only the server ends the choice', () => {
    vi.useFakeTimers()
    show(answer(payment(), approvalPart({ deadline: Date.now() + 62_000 })))
    expect(screen.getByRole('timer').textContent).toBe('1:02')
    act(() => void vi.advanceTimersByTime(2_000))
    expect(announced()).toContain('One minute left to decide.')
    act(() => void vi.advanceTimersByTime(50_000))
    expect(announced()).toContain('10 seconds left to decide.')
    expect(button('Approve')).toBeDefined()
    act(() => void vi.advanceTimersByTime(10_000))
    expect(announced()).toContain('According to the clock of this device, the deadline has passed.')
    expect(button('Approve')).toBeDefined()
  })
})

test('[RE380] the countdown of a recorded conversation stands still', () => {
  vi.useFakeTimers({ now: 0 })
  const asked = answer(payment(), approvalPart({ deadline: 90_000 }))
  const { update } = show(asked, { time: 30_000 })
  expect(screen.getByRole('timer').textContent).toBe('1:00')
  act(() => void vi.advanceTimersByTime(20_000))
  expect(screen.getByRole('timer').textContent).toBe('1:00')
  update(asked, { time: 80_000 })
  expect(screen.getByRole('timer').textContent).toBe('0:10')
})

import { cleanup, render, screen } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'

import type { PendingApproval } from '../../src/protocol/server-views.ts'
import { AdkProvider, useAttention } from '../../src/react/index.ts'
import { type Language, LANGUAGES } from './support/languages.ts'

const approval = (id: string, changes: Partial<PendingApproval> = {}): PendingApproval => ({
  id,
  state: 'requested',
  toolName: 'process_payment',
  args: { amount: 30 },
  severity: 'medium',
  requestedAt: 0,
  deadline: 600_000,
  approvals: { given: 0, needed: 1 },
  voted: false,
  step: 0,
  own: true,
  ...changes,
})

type Options = Parameters<typeof useAttention>[1]

/** Shows the sentence of the newest approvals. */
function Page({ approvals, ...options }: Options & { approvals: PendingApproval[] }) {
  return <p role="status">{useAttention(approvals, options)}</p>
}

function show(first: PendingApproval[], options: Options = {}, locale: Language = 'en') {
  const page = (approvals: PendingApproval[]) => (
    <AdkProvider
      labels={LANGUAGES[locale]}
      describeCall={(_name, args) =>
        locale === 'en'
          ? `Send $${String((args as { amount: number }).amount)} to \u202EAlice`
          : '30ドルを送金'
      }
    >
      <Page approvals={approvals} {...options} />
    </AdkProvider>
  )
  const view = render(page(first))
  return (next: PendingApproval[]) => view.rerender(page(next))
}

const announcement = () => screen.getByRole('status').textContent

afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

test('[RE379] the title of the page contains the number of approvals that wait for this person', () => {
  const change = show([approval('a'), approval('b'), approval('c', { voted: true })], {
    title: 'Chat',
  })
  expect(document.title).toBe('(2) Chat')
  change([approval('a'), approval('b', { mayDecide: false })])
  expect(document.title).toBe('(1) Chat')
  change([])
  expect(document.title).toBe('Chat')
})

test('[RE379] the title says that more approvals wait than are loaded', () => {
  show([approval('a')], { title: 'Chat', hasMore: true })
  expect(document.title).toBe('(1+) Chat')
})

test('[RE379] a new approval is announced with what it does, its severity and the time', () => {
  const change = show([approval('a')])
  expect(announcement()).toBe(
    'Approval needed: Send $30 to ⟨U+202E⟩Alice, medium risk, 10 minutes.',
  )
  change([approval('a'), approval('b', { args: { amount: 5 }, severity: undefined })])
  expect(announcement()).toBe('Approval needed: Send $5 to ⟨U+202E⟩Alice, 10 minutes.')
  // A list that has only become shorter announces nothing.
  change([approval('a')])
  expect(announcement()).toBe('')
})

test('[RE883] the rest of several approvals is not announced again when one of them is decided', () => {
  const change = show([approval('a'), approval('b')])
  expect(announcement()).not.toBe('')
  change([approval('b')])
  expect(announcement()).toBe('')
})

test('[RE883] an approval whose card the conversation shows is announced there only', () => {
  const log = document.body.appendChild(document.createElement('div'))
  log.className = 'adk-messages'
  log.append(Object.assign(document.createElement('div'), { innerHTML: '<p data-approval="a">' }))
  const change = show([approval('a')])
  expect(announcement()).toBe('')
  change([approval('a'), approval('b')])
  expect(announcement()).toMatch(/^Approval needed/)
  log.remove()
})

test('[RE16] [RE379] the announcement is in Japanese', () => {
  show([approval('a')], {}, 'ja')
  expect(announcement()).toMatch(/^承認が必要です：30ドルを送金、.*期限は10分。$/)
})

test.each([
  [60_000, ', 1 minute.', '期限は1分。'],
  [7_200_000, ', 2 hours.', '期限は2時間。'],
  [86_400_000, ', 24 hours.', '期限は24時間。'],
  [259_200_000, ', 3 days.', '期限は3日。'],
  [20_000, ' risk.', 'リスク。'],
])('[RE379] the time to decide, %i ms, is in words that people use', (deadline, en, ja) => {
  show([approval('a', { deadline })])
  expect(announcement().endsWith(en)).toBe(true)
  cleanup()
  show([approval('a', { deadline })], {}, 'ja')
  expect(announcement().endsWith(ja)).toBe(true)
})

test.each([
  ['granted', 'hidden', 1],
  ['granted', 'visible', 0],
  ['denied', 'hidden', 0],
] as const)(
  '[RE379] with the permission %s, a page that is %s shows %i notifications',
  (permission, visibility, shown) => {
    const notifications: { title: string; body?: string; tag?: string; click: () => void }[] = []
    class FakeNotification extends EventTarget {
      static readonly permission = permission
      constructor(title: string, options: NotificationOptions) {
        super()
        const click = () => void this.dispatchEvent(new Event('click'))
        notifications.push({ title, body: options.body ?? '', tag: options.tag ?? '', click })
      }
      close = vi.fn()
    }
    vi.stubGlobal('Notification', FakeNotification)
    vi.spyOn(document, 'visibilityState', 'get').mockReturnValue(visibility)
    vi.spyOn(window, 'focus').mockImplementation(() => undefined)
    const onOpen = vi.fn()
    const change = show([], { notify: true, onOpen })
    change([approval('a')])
    change([approval('a', { hint: 'newer' })])
    expect(notifications).toHaveLength(shown)
    const [notification] = notifications
    if (!notification) return
    expect(notification).toMatchObject({
      title: 'Approval needed',
      body: 'Send $30 to ⟨U+202E⟩Alice',
      tag: 'a',
    })
    notification.click()
    expect(onOpen).toHaveBeenCalledWith(expect.objectContaining({ id: 'a' }))
  },
)

test('[RE379] a browser in which notifications throw shows the number only', () => {
  class Throwing {
    static readonly permission = 'granted'
    constructor() {
      throw new TypeError('Illegal constructor')
    }
  }
  vi.stubGlobal('Notification', Throwing)
  vi.spyOn(document, 'visibilityState', 'get').mockReturnValue('hidden')
  show([approval('a')], { notify: true, sound: true, title: 'Chat' })
  expect(document.title).toBe('(1) Chat')
})

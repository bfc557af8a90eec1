import { act, render, screen, waitFor, within } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { afterEach, expect, test, vi } from 'vitest'

import { times } from '../../../../test/support/long-run.ts'
import type { AdkApi, AttachedChat } from '../../src/client/index.ts'
import { AdkProvider, ApprovalInbox, type Inbox, useInbox } from '../../src/react/index.ts'
import { en } from '../../src/react/labels/en.ts'
import { ja } from '../../src/react/labels/ja.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { defer } from '../support/agents.ts'
import { TestBrowser } from './support/chat-page.tsx'
import type { InboxApi, UseInboxOptions } from '../../src/react/hooks/use-approval-lists.ts'

afterEach(() => void vi.useRealTimers())

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`
const user = userEvent.setup()
const forms = (): HTMLElement[] => screen.queryAllByRole('button', { name: 'Approve' })

interface InboxPageProps extends UseInboxOptions {
  readonly api: InboxApi
  readonly onShown?: (inbox: Inbox) => void
}

function InboxPage({ api, onShown, ...options }: InboxPageProps) {
  const inbox = useInbox(api, options)
  onShown?.(inbox)
  const { approvals, problem, refusals, deciding, decide, withdraw } = inbox
  const { hasMore, loadMore, loadingMore } = inbox
  return (
    <ApprovalInbox
      approvals={approvals}
      problem={problem}
      refusals={refusals}
      deciding={deciding}
      onDecide={decide}
      onWithdraw={withdraw}
      hasMore={hasMore}
      onLoadMore={loadMore}
      loadingMore={loadingMore}
      renderChatLink={(chatId) => <a href={`/?chat=${chatId}`}>Open</a>}
    />
  )
}

/** The inbox without its list, because many cards are slow to render. */
function InboxAlone({ api, onShown }: Required<Pick<InboxPageProps, 'api' | 'onShown'>>) {
  onShown(useInbox(api))
  return null
}

/** The fields of the server's response that the tests need. */
function pending(id: string, amount: number) {
  return {
    id,
    state: 'requested',
    toolName: 'pay',
    args: { amount },
    requestedAt: 0,
    deadline: Date.now() + 60_000,
    approvals: { given: 0, needed: 1 },
    voted: false,
    step: 0,
    own: true,
  }
}

test('[RE11][RE5] a pending approval of a chat is listed, decided in the list, and removed', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'live')
  const page = browser.show({ api: browser.api })
  const view = render(<InboxPage api={browser.api} attached={page.chat.attached} />)
  await screen.findByText('No approvals are pending.')
  page.say(PAY)
  const item = await screen.findByRole('listitem', { name: 'Run process_payment' })
  expect(item.querySelector('a')?.getAttribute('href')).toBe('/?chat=chat-1')
  const approve = item.querySelector<HTMLElement>('[aria-keyshortcuts="a"]')
  if (approve) await user.click(approve)
  await page.until('Paid.')
  await screen.findByText('No approvals are pending.')
  expect(testBridge.wallet.payments).toHaveLength(1)
  view.unmount()
})

test('[RE11] the feed reports approvals and decisions of other pages, without polling', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  const view = render(<InboxPage api={browser.api} pollMs={1_000_000} />)
  await screen.findByText('No approvals are pending.')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await screen.findByRole('listitem', { name: 'Run process_payment' })
  await page.click('Approve')
  await page.until('Paid.')
  await screen.findByText('No approvals are pending.')
  expect(testBridge.wallet.payments).toHaveLength(1)
  view.unmount()
})

test('[RE11] a hidden page holds no feed', async () => {
  const open = new Set<object>()
  const api: InboxApi = {
    listApprovals: () => Promise.resolve([]),
    decide: () => Promise.resolve('approved'),
    watch: () => {
      const feed = {}
      open.add(feed)
      return () => void open.delete(feed)
    },
  }
  const seen = vi.spyOn(document, 'visibilityState', 'get')
  const view = render(<InboxPage api={api} />)
  const turn = (state: 'hidden' | 'visible'): void => {
    seen.mockReturnValue(state)
    act(() => void document.dispatchEvent(new window.Event('visibilitychange')))
  }
  await screen.findByText('No approvals are pending.')
  expect(open.size).toBe(1)
  turn('hidden')
  expect(open.size).toBe(0)
  turn('visible')
  turn('visible')
  expect(open.size).toBe(1)
  view.unmount()
  expect(open.size).toBe(0)
  seen.mockRestore()
})

test('[RE11] several events within milliseconds cause one request', async () => {
  let requests = 0
  let isPending = false
  let emit: Parameters<NonNullable<InboxApi['watch']>>[0] | undefined
  const api: InboxApi = {
    listApprovals: () => {
      requests += 1
      return Promise.resolve(isPending ? [pending('one', 50)] : [])
    },
    decide: () => Promise.resolve('approved'),
    watch: (listener) => {
      emit = listener
      return () => undefined
    },
  }
  const view = render(<InboxPage api={api} />)
  await screen.findByText('No approvals are pending.')
  const before = requests
  isPending = true
  for (const state of ['requested', 'approved', 'started', 'succeeded'])
    emit?.({ type: 'approval', approvalId: 'one', state })
  await waitFor(() => expect(forms()).toHaveLength(1))
  expect(requests).toBe(before + 1)
  // An event after that request causes another one.
  emit?.({ type: 'approval', approvalId: 'one', state: 'requested' })
  await waitFor(() => expect(requests).toBe(before + 2))
  view.unmount()
})

test('[RE11] the list shows a refusal at its approval', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await page.until('Waiting for your decision.')
  const view = render(<InboxPage api={browser.api} />)
  const item = await screen.findByRole('listitem')
  const edit = item.querySelector<HTMLElement>('[aria-keyshortcuts="e"]')
  if (edit) await user.click(edit)
  const amount = screen.getByLabelText('amount')
  await user.clear(amount)
  await user.type(amount, '-5')
  await user.click(screen.getByRole('button', { name: 'Approve with these changes' }))
  const refusal = await screen.findByRole('alert')
  expect(refusal.closest('.adk-inbox-item')).not.toBeNull()
  expect(screen.getByLabelText('amount')).toHaveProperty('value', '-5')
  view.unmount()
})

test('[RE11] a response that arrives after a later one is not shown', async () => {
  const answers: ((list: ReturnType<typeof pending>[]) => void)[] = []
  const listApprovals = () =>
    new Promise<ReturnType<typeof pending>[]>((resolve) => answers.push(resolve))
  const api = { listApprovals, decide: () => Promise.resolve('approved') }
  const moves: (() => void)[] = []
  const attached = {
    onProgress: (listener: () => void) => {
      moves.push(listener)
      return () => undefined
    },
  } as unknown as AttachedChat
  render(<InboxPage api={api} attached={attached} />)
  act(() => moves.at(-1)?.())
  const [late, newest] = [answers.at(-2), answers.at(-1)]
  await act(async () => newest?.([pending('new', 2)]))
  await act(async () => late?.([pending('old', 1)]))
  expect(screen.getAllByRole('listitem')).toHaveLength(1)
  expect(screen.getByRole('table').textContent).toContain('2')
})

test('[RE21] while a decision is being sent, no other can be made, and its form is hidden until the list is read again', async () => {
  const posted: boolean[] = []
  const answers: ReturnType<typeof defer<string | Error>>[] = []
  const lists = [defer<ReturnType<typeof pending>[]>()]
  let decideHere: Inbox['decide'] | undefined
  const api: InboxApi = {
    listApprovals: () => lists.at(-1)?.promise ?? Promise.resolve([]),
    decide: (_id, { approved }) => {
      posted.push(approved)
      const answer = defer<string | Error>()
      answers.push(answer)
      return answer.promise.then((now) => (now instanceof Error ? Promise.reject(now) : now))
    },
  }
  const list = [pending('a', 1), pending('b', 2)]
  lists[0]?.resolve(list)
  render(<InboxPage api={api} onShown={({ decide }) => (decideHere = decide)} />)
  await waitFor(() => expect(forms()).toHaveLength(2))
  await user.click(forms()[0] ?? document.body)
  expect(forms()).toHaveLength(1)
  expect(screen.getByText('Sending your decision…')).toBeDefined()
  await act(async () => decideHere?.('a', { approved: false }))
  expect(posted).toEqual([true])
  // A refusal opens it again.
  await act(async () => answers[0]?.resolve(new TypeError('network')))
  await waitFor(() => expect(forms()).toHaveLength(2))
  expect(screen.getByRole('alert').textContent).toContain('cannot be reached')
  // An accepted decision stays hidden until the list is read again.
  lists.push(defer())
  await user.click(forms()[0] ?? document.body)
  await act(async () => answers[1]?.resolve('approved'))
  expect(forms()).toHaveLength(1)
  await act(async () => lists[1]?.resolve(list.slice(1)))
  expect(screen.getAllByRole('listitem')).toHaveLength(1)
  expect(forms()).toHaveLength(1)
  expect(posted).toEqual([true, true])
})

test('[RE11] the list is read at intervals while the page is visible, and says so if it cannot be read', async () => {
  vi.useFakeTimers()
  let looks = 0
  let isDown = false
  const api = {
    listApprovals: () => {
      looks += 1
      return isDown ? Promise.reject(new TypeError('network')) : Promise.resolve([pending('a', 1)])
    },
    decide: () => Promise.resolve('approved'),
  }
  const seen = vi.spyOn(document, 'visibilityState', 'get')
  render(<InboxPage api={api} pollMs={1_000} />)
  await act(() => vi.advanceTimersByTimeAsync(0))
  const before = looks
  await act(() => vi.advanceTimersByTimeAsync(2_000))
  expect(looks).toBe(before + 2)
  seen.mockReturnValue('hidden')
  await act(() => vi.advanceTimersByTimeAsync(5_000))
  expect(looks).toBe(before + 2)
  isDown = true
  seen.mockReturnValue('visible')
  await act(async () => {
    document.dispatchEvent(new window.Event('visibilitychange'))
    await vi.advanceTimersByTimeAsync(0)
  })
  expect(looks).toBe(before + 3)
  expect(screen.getByText('The list could not be refreshed. It may be out of date.')).toBeDefined()
  expect(screen.getAllByRole('listitem')).toHaveLength(1)
  seen.mockRestore()
})

test('[RE11][RE5] if several people must approve, one vote is counted and decides nothing', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { chain: [{ principals: ['hanako'] }, { roles: ['manager'] }] } },
  })
  await using browser = new TestBrowser(testBridge, 'live')
  await using manager = new TestBrowser(testBridge, 'live', 'mari')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await page.until('Needs approval from 2 people.')
  await page.click('Approve')
  await page.until('You approved this (1 of 2). Waiting for another person.')
  expect(screen.queryByRole('button', { name: 'Approve' })).toBeNull()
  await waitFor(async () => expect(await manager.api.listApprovals()).toHaveLength(1))
  expect(page.text).not.toContain('Approved. Running')
  expect(testBridge.wallet.payments).toEqual([])
  const view = render(<InboxPage api={manager.api} />)
  const item = await screen.findByRole('listitem')
  expect(item.textContent).toContain('1 of 2 people have approved.')
  expect(item.querySelector('a')).toBeNull()
  const approve = item.querySelector<HTMLElement>('[aria-keyshortcuts="a"]')
  if (approve) await user.click(approve)
  await page.until('Paid.')
  expect(testBridge.wallet.payments).toHaveLength(1)
  view.unmount()
})

test('[RE22] the buttons disappear after the person’s own vote, not after another person’s', async () => {
  const people = { principals: ['hanako'], roles: ['manager'] }
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { deciders: people, approvers: 2 } },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  await using manager = new TestBrowser(testBridge, 'sse', 'mari')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await page.until('Needs approval from 2 people.')
  await page.untilReady()
  const [approval] = await manager.api.listApprovals()
  expect(approval).toMatchObject({ voted: false, approvals: { given: 0 } })
  await manager.api.decide(approval?.id ?? '', { approved: true })
  await page.until('1 of 2 people have approved.')
  const view = render(<InboxPage api={manager.api} />)
  const waiting = await screen.findByText('You approved this (1 of 2). Waiting for another person.')
  const item = waiting.closest('li')
  expect(item?.querySelector('.adk-approval-form')).toHaveProperty('hidden', true)
  view.unmount()
  await page.click('Approve')
  await page.until('Paid.')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[RE22] the person’s own vote is known after a reload', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { chain: [{ principals: ['hanako'] }, { roles: ['manager'] }] } },
  })
  await using browser = new TestBrowser(testBridge, 'live')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await page.click('Approve')
  await page.until('You approved this (1 of 2).')
  page.leave()
  const { messages } = await browser.api.loadChat('chat-1')
  const after = browser.show({ api: browser.api, messages })
  await after.until('You approved this (1 of 2).')
  expect(screen.queryByRole('button', { name: 'Approve' })).toBeNull()
})

test('[RE140] more than a page is listed on request, and stays listed when the inbox is read again', async () => {
  const all = Array.from({ length: 230 }, (_, index) => pending(`approval-${index}`, index))
  const asked: (string | undefined)[] = []
  const api: InboxApi = {
    listApprovals: () => Promise.reject(new Error('All of it at once was not asked for.')),
    decide: () => Promise.resolve('approved'),
    listApprovalsPage: async (paging) => {
      const after = paging?.after
      asked.push(after)
      const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1
      const approvals = all.slice(start, start + 100)
      const next = approvals.at(-1)?.id
      return { approvals, ...(start + 100 < all.length && { next }) }
    },
  }
  let inbox: Inbox | undefined
  const shown = () => [inbox?.approvals.length, inbox?.hasMore]
  const view = render(<InboxAlone api={api} onShown={(now) => (inbox = now)} />)
  await waitFor(() => expect(shown()).toEqual([100, true]))
  expect(asked.filter((after) => after !== undefined)).toEqual([])
  act(() => inbox?.loadMore())
  await waitFor(() => expect(shown()).toEqual([200, true]))
  act(() => inbox?.loadMore())
  await waitFor(() => expect(shown()).toEqual([230, false]))
  all.splice(0, 5)
  act(() => inbox?.refresh())
  await waitFor(() => expect(shown()).toEqual([225, false]))
  view.unmount()
})

test('[RE140] a vote is withdrawn in the inbox, and the card of the chat does not count it any more', async () => {
  const people = { principals: ['hanako'], roles: ['manager'] }
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { deciders: people, approvers: 2 } },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  await using manager = new TestBrowser(testBridge, 'sse', 'mari')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await page.until('Needs approval from 2 people.')
  await page.untilReady()
  let inbox: Inbox | undefined
  const view = render(<InboxPage api={manager.api} onShown={(now) => (inbox = now)} />)
  await waitFor(() => expect(inbox?.approvals).toHaveLength(1))
  const id = inbox?.approvals[0]?.id ?? ''
  await act(async () => inbox?.decide(id, { approved: true }))
  await page.until('1 of 2 people have approved.')
  await act(async () => inbox?.withdraw(id))
  expect(inbox?.approvals).toMatchObject([{ voted: false, approvals: { given: 0 } }])
  await waitFor(() => expect(page.text).not.toContain('1 of 2'))
  // A vote that does not exist cannot be withdrawn: the error is shown at its approval.
  await act(async () => inbox?.withdraw(id))
  expect(inbox?.refusals.get(id)).toMatchObject({ code: 'not-voted' })
  view.unmount()
})

test('[RE140] a button withdraws the vote, and the person can decide again', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { deciders: { roles: ['manager'] }, approvers: 2 } },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  await using manager = new TestBrowser(testBridge, 'sse', 'mari')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await page.until('Needs approval from 2 people.')
  await page.untilReady()
  const view = render(<InboxPage api={manager.api} />)
  const item = await screen.findByRole('listitem')
  const withdrawals = () => within(item).queryAllByRole('button', { name: 'Withdraw vote' })
  const approve = () => within(item).findByRole('button', { name: 'Approve' })
  expect(withdrawals()).toEqual([])
  await user.click(await approve())
  await waitFor(() => expect(withdrawals()).toHaveLength(1))
  withdrawals()[0]?.focus()
  await user.keyboard('{Enter}')
  await approve()
  expect(withdrawals()).toEqual([])
  // The button has disappeared, and the focus stays in the list.
  expect(view.container.contains(document.activeElement)).toBe(true)
  expect(await manager.api.listApprovals()).toMatchObject([{ voted: false }])
  view.unmount()
})

const words = [
  ['en', en],
  ['ja', ja],
] as const

test.each(words.slice(0, times(1, 2)))(
  '[RE140] a button loads more and shows when it is busy (%s)',
  async (_language, labels) => {
    const { loadMore, loadingMore, withdraw } = labels.inbox
    const all = Array.from({ length: 101 }, (_, index) => ({
      ...pending(`approval-${index}`, index),
      // The last one of each page waits for the person.
      voted: index < 99,
      approvals: { given: 1, needed: 2 },
    }))
    const rest = defer()
    const api: InboxApi = {
      listApprovals: () => Promise.reject(new Error('All of it at once was not asked for.')),
      decide: () => Promise.resolve('approved'),
      withdrawVote: () => Promise.resolve('requested'),
      listApprovalsPage: async (paging) => {
        if (paging?.after === undefined)
          return { approvals: all.slice(0, 100), next: 'approval-99' }
        await rest.promise
        return { approvals: all.slice(100) }
      },
    }
    const view = render(
      <AdkProvider labels={labels}>
        <InboxPage api={api} />
      </AdkProvider>,
    )
    const button = await screen.findByText(loadMore)
    expect(screen.getByText(labels.inbox.label(1, true))).toBeDefined()
    expect(screen.getAllByText(withdraw)).toHaveLength(99)
    await user.click(button)
    expect(screen.getByText(loadingMore).getAttribute('aria-disabled')).toBe('true')
    // A second click while it is busy sends no request.
    await user.click(button)
    await act(async () => rest.resolve())
    await screen.findByText(labels.inbox.label(2))
    expect(screen.queryByText(loadMore)).toBeNull()
    expect(document.activeElement).toBe(screen.getByRole('region', { name: labels.inbox.title }))
    view.unmount()
  },
)

test('[RE400] the inbox shows the agents that lead to a call', () => {
  const nested = { ...pending('a', 1), path: ['planner', 'travel'] }
  render(<ApprovalInbox approvals={[nested]} onDecide={vi.fn()} />)
  expect(screen.getByText('Planner › Travel › Pay')).toBeDefined()
})

test('[RE15] in the inbox too, a clock that runs ahead takes no decision away', async () => {
  const late = { ...pending('a', 1), deadline: Date.now() - 600_000 }
  const onDecide = vi.fn()
  render(<ApprovalInbox approvals={[late]} onDecide={onDecide} />)
  expect(
    screen.getByText('According to the clock of this device, the deadline has passed.'),
  ).toBeDefined()
  await user.click(screen.getByRole('button', { name: 'Approve' }))
  expect(onDecide).toHaveBeenCalledExactlyOnceWith('a', { approved: true })
})

test('[RE450] an approval shows who asks, in which words, who has approved, and who decides', async () => {
  await using testBridge = await TestBridge.open({
    namePrincipal: (id) => (id === 'hanako' ? 'Hana\u202Eko' : undefined),
    approvals: {
      process_payment: {
        showUserText: true,
        chain: [{ principals: ['hanako'] }, { roles: ['manager'] }],
      },
    },
  })
  await using browser = new TestBrowser(testBridge, 'live')
  await using manager = new TestBrowser(testBridge, 'live', 'mari')
  const page = browser.show({ api: browser.api })
  page.say(`Dinner ${PAY}`)
  await page.until('Needs approval from 2 people.')
  await page.click('Approve')
  await waitFor(async () => expect(await manager.api.listApprovals()).toHaveLength(1))
  const view = render(<InboxPage api={manager.api} />)
  const item = await screen.findByRole('listitem')
  const facts = [...item.querySelectorAll('.adk-people > div')].map(
    ({ textContent }) => textContent,
  )
  expect(facts).toEqual([
    'Requested byHana⟨U+202E⟩ko',
    expect.stringMatching(/^MessageDinner /),
    expect.stringMatching(/^Approved byHana⟨U\+202E⟩ko · \d/),
    'Who decidesHana⟨U+202E⟩ko (done)Anyone with the role “manager” (now)',
  ])
  view.unmount()
})

test('[RE450] the role of approvers is named in words', () => {
  const roles = ['approver', 'manager'] as const
  expect(roles.map(en.inbox.context.role)).toEqual([
    'Any approver',
    'Anyone with the role “manager”',
  ])
  expect(roles.map(ja.inbox.context.role)).toEqual([
    '承認者のどなたか',
    '「manager」の役割を持つ人',
  ])
})

test('[RE450] a person who cannot decide sees why, and no form', async () => {
  const steps = [{ needed: 1, given: 0, principals: [], roles: ['manager'] }]
  const mine = { ...pending('one', 50), requester: { id: 'me', own: true }, steps }
  const api: InboxApi = {
    listApprovals: () => Promise.resolve([{ ...mine, mayDecide: false, whyNot: 'not-named' }]),
    decide: () => Promise.resolve('approved'),
  }
  const view = render(<InboxPage api={api} />)
  const item = await screen.findByRole('listitem')
  expect(item.textContent).toContain('You cannot decide this. Waiting for another person.')
  expect(item.textContent).toContain('Requested byYou')
  expect(forms()).toEqual([])
  view.unmount()
})

test.each([
  { language: 'en', labels: en, approved: true },
  { language: 'ja', labels: ja, approved: false },
])(
  '[RE1700] calls of a tool are decided together, each in words, apart from those of high severity ($language)',
  async ({ labels, approved }) => {
    const sent = vi.fn<NonNullable<InboxApi['decideTogether']>>().mockResolvedValue(new Map())
    const approvals = [
      pending('a', 1),
      {
        ...pending('b', 2),
        preview: { headline: 'Send $2', lines: [{ label: 'Fee', value: '$0' }], digest: 'd2' },
        hasPreview: true as const,
      },
      { ...pending('c', 3), severity: 'high' as const },
      { ...pending('d', 4), voted: true },
      { ...pending('e', 5), toolName: 'other' },
      { ...pending('f', 6), severity: 'medium' as const, misleading: true as const },
    ]
    const api: InboxApi = {
      listApprovals: async () => approvals,
      decide: async () => 'approved',
      decideTogether: sent,
    }
    function Page() {
      return <ApprovalInbox inbox={useInbox(api)} />
    }
    const view = render(
      <AdkProvider labels={labels}>
        <Page />
      </AdkProvider>,
    )
    const { together } = labels.inbox
    const summary = await screen.findByText(/2/, { selector: 'summary' })
    expect(summary.closest('details')?.open).toBe(false)
    await user.click(summary)
    const items = summary.closest('details')?.querySelectorAll('li')
    expect([...(items ?? [])].map(({ textContent }) => textContent)).toEqual([
      expect.stringMatching(/pay.*amount: 1$/),
      'Send $2amount: 2Fee$0',
    ])
    const name = approved ? together.approve(2) : together.deny(2)
    await user.click(screen.getByRole('button', { name }))
    expect(sent.mock.calls).toEqual([
      [
        [
          { approvalId: 'a', approved, preview: undefined },
          { approvalId: 'b', approved, preview: 'd2' },
        ],
      ],
    ])
    view.unmount()
  },
)

test.each([
  [
    'en',
    en,
    ['ops (hanako) · Request · sent', 'ops · Reminder · due', 'mail · Request · did not arrive'],
  ],
  [
    'ja',
    ja,
    [
      'ops (hanako) · 承認の依頼 · 送信済み',
      'ops · リマインダー · 送信予定',
      'mail · 承認の依頼 · 未達',
    ],
  ],
] as const)(
  '[RE1710] an approval shows who was told, when the person asks for it (%s)',
  async (_language, labels, lines) => {
    const notice = { channel: 'ops', type: 'approval.requested', at: 0, attempts: 1 } as const
    const listNotices = vi
      .fn<AdkApi['listNotices']>()
      .mockRejectedValueOnce(new Error('Not now.'))
      .mockResolvedValue([
        { ...notice, to: 'hanako', state: 'sent' },
        { ...notice, type: 'approval.reminder', state: 'waiting', attempts: 0 },
        { ...notice, channel: 'mail', state: 'failed', attempts: 10 },
      ])
    const view = render(
      <AdkProvider labels={labels} api={{ signIn: () => Promise.resolve(undefined), listNotices }}>
        <ApprovalInbox approvals={[pending('one', 1)]} />
      </AdkProvider>,
    )
    const summary = screen.getByText(labels.notices.title)
    expect(listNotices).not.toHaveBeenCalled()
    await user.click(summary)
    await screen.findByText(labels.notices.failed)
    await user.click(summary)
    await user.click(summary)
    await waitFor(() => expect(listNotices.mock.calls).toEqual([['one'], ['one']]))
    const items = await waitFor(() => {
      const found = [...(summary.parentElement?.querySelectorAll('li') ?? [])]
      expect(found).toHaveLength(3)
      return found.map(({ textContent }) => textContent)
    })
    for (const [index, line] of lines.entries()) expect(items[index]).toContain(line)
    expect(items[2]).toContain(labels.notices.attempts(10))
    expect(screen.queryByText(labels.notices.failed)).toBeNull()
    view.unmount()
  },
)

import { act, render, screen, waitFor } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { useState } from 'react'
import { expect, test } from 'vitest'

import type { PendingApproval } from '../../src/protocol/server-views.ts'
import {
  ApprovalFilters,
  ApprovalHistoryList,
  ApprovalInbox,
  en,
  useApprovalHistory,
} from '../../src/react/index.ts'
import type { HistoryApi } from '../../src/react/hooks/use-approval-lists.ts'

const user = userEvent.setup()

function approval(id: string, fields: Partial<PendingApproval> = {}): PendingApproval {
  return {
    id,
    state: 'requested',
    toolName: id,
    args: { amount: 50 },
    requestedAt: 0,
    deadline: Date.now() + 60_000,
    approvals: { given: 0, needed: 1 },
    voted: false,
    step: 0,
    own: true,
    ...fields,
  }
}

const lines = (): HTMLElement[] => screen.getAllByRole('button', { expanded: false })
const focused = (): string | null | undefined =>
  document.activeElement?.closest('li')?.getAttribute('aria-label')

test('[RE1480] an inbox is shown as the hook returns it, and a prop replaces the same part', async () => {
  const decided: string[] = []
  const inbox = {
    approvals: [approval('one')],
    hasMore: true,
    loadingMore: false,
    problem: undefined,
    refusals: new Map(),
    deciding: new Set<string>(),
    waitingDecisions: new Map(),
    decide: async (id: string) => void decided.push(id),
    decideTogether: undefined,
    cancelDecision: () => true,
    withdraw: async () => undefined,
    loadMore: () => void decided.push('more'),
  }
  const view = render(<ApprovalInbox inbox={inbox} />)
  await user.click(screen.getByRole('button', { name: en.approval.approve }))
  await user.click(screen.getByRole('button', { name: en.inbox.loadMore }))
  expect(decided).toEqual(['one', 'more'])
  view.rerender(<ApprovalInbox inbox={inbox} approvals={[approval('two')]} hasMore={false} />)
  expect(screen.getAllByRole('listitem').map((item) => item.getAttribute('aria-label'))).toEqual([
    'Run two',
  ])
  expect(screen.queryByRole('button', { name: en.inbox.loadMore })).toBeNull()
})

test('[RE452] a collapsible list is one tab stop; keys move, open and close', async () => {
  const decided: string[] = []
  render(
    <>
      <ApprovalInbox
        collapsible
        approvals={['one', 'two', 'three'].map((id) => approval(id, { severity: 'high' }))}
        onDecide={(id) => void decided.push(id)}
      />
      <button type="button">After</button>
    </>,
  )
  await user.tab()
  expect(focused()).toBe('Run one')
  await user.tab()
  expect(document.activeElement?.textContent).toBe('After')
  await user.tab({ shift: true })
  for (const [key, name] of [
    ['j', 'Run two'],
    ['{ArrowDown}', 'Run three'],
    ['j', 'Run three'],
    ['{Home}', 'Run one'],
    ['k', 'Run one'],
    ['{End}', 'Run three'],
    ['{ArrowUp}', 'Run two'],
  ] as const) {
    await user.keyboard(key)
    expect([key, focused()]).toEqual([key, name])
  }
  // The Tab key returns to the line that had the focus.
  await user.tab()
  await user.tab({ shift: true })
  expect(focused()).toBe('Run two')
  await user.keyboard('{Enter}')
  expect(screen.getAllByRole('button', { expanded: true })).toHaveLength(1)
  // High severity: neither Enter nor the key of the button decides.
  await user.keyboard('a')
  await user.keyboard('{Enter}')
  expect(decided).toEqual([])
  // Letters in an input are text.
  await user.keyboard('d')
  await user.keyboard('jk')
  expect(screen.getByLabelText('Reason (optional)')).toHaveProperty('value', 'jk')
  await user.keyboard('{Escape}')
  await user.keyboard('{Escape}')
  expect(lines()).toHaveLength(3)
  expect(focused()).toBe('Run two')
  // What was typed is still there.
  await user.keyboard('{Enter}')
  await user.keyboard('d')
  expect(screen.getByLabelText('Reason (optional)')).toHaveProperty('value', 'jk')
})

/** Returns the names of the approvals that are open. */
const opened = () =>
  screen
    .queryAllByRole('button', { expanded: true })
    .map((line) => line.closest('li')?.getAttribute('aria-label'))

function TwoApprovals({ defaultOpenId }: { readonly defaultOpenId?: string }) {
  return (
    <ApprovalInbox
      collapsible
      defaultOpenId={defaultOpenId}
      approvals={[approval('one'), approval('two')]}
      onDecide={() => undefined}
    />
  )
}

test('[RE452] one approval can be open from the start, until the person closes it or opens another one', async () => {
  const view = render(<TwoApprovals />)
  expect(opened()).toEqual([])
  // The list is loaded before the page knows which one to open.
  view.rerender(<TwoApprovals defaultOpenId="two" />)
  expect(opened()).toEqual(['Run two'])
  await user.click(screen.getByRole('button', { expanded: true }))
  expect(opened()).toEqual([])
  await user.click(screen.getByRole('button', { name: /Run one/ }))
  view.rerender(<TwoApprovals defaultOpenId="two" />)
  expect(opened()).toEqual(['Run one'])
})

test('[RE452] j and k also move between approvals that are all open, and from the list itself', async () => {
  render(
    <ApprovalInbox approvals={[approval('one'), approval('two')]} onDecide={() => undefined} />,
  )
  act(() => screen.getByRole('region').focus())
  await user.keyboard('j')
  expect(focused()).toBe('Run one')
  await user.keyboard('j')
  expect(document.activeElement).toBe(screen.getByRole('listitem', { name: 'Run two' }))
  await user.keyboard('k')
  expect(focused()).toBe('Run one')
})

interface HistoryPageProps {
  readonly api: HistoryApi
}

function HistoryPage({ api }: HistoryPageProps) {
  const [filter, setFilter] = useState<{
    state: string
    toolName?: string | undefined
    requester?: string | undefined
  }>({ state: 'decided' })
  const { state, toolName, requester } = filter
  const { loadMore, ...history } = useApprovalHistory(api, {
    state,
    pageSize: 2,
    ...(toolName !== undefined && { toolName }),
    ...(requester !== undefined && { requester }),
  })
  return (
    <>
      <ApprovalFilters filter={filter} onChange={setFilter} approvals={history.approvals} />
      <ApprovalHistoryList {...history} onLoadMore={loadMore} />
    </>
  )
}

test('[RE451] the history shows who decided, when, why and what the call did, in pages, by filters', async () => {
  const queries: string[] = []
  const all = [
    approval('pay', {
      state: 'denied',
      at: 0,
      by: [{ id: 'm', name: 'Mari' }],
      reason: 'Too much',
      reply: { words: 'no, thanks', channel: 'spoken' },
      requester: { id: 'h', name: 'Hanako' },
    }),
    approval('send', {
      state: 'succeeded',
      at: 0,
      by: [{ id: 'me', own: true }],
      votes: [{ by: { id: 'me', own: true }, step: 0, at: 0 }],
      requester: { id: 'me', own: true },
      receipt: { headline: 'Sent $50.00', lines: [{ label: 'Reference', value: 'txn_1' }] },
    }),
    approval('ask', { state: 'expired', at: 0 }),
  ]
  const api: HistoryApi = {
    listApprovalHistory: (query) => {
      const { state, toolName, requester, after, limit = 100 } = query ?? {}
      queries.push(JSON.stringify([state, toolName, requester, after]))
      const found = all.filter((item) => toolName === undefined || item.toolName === toolName)
      const start = after === undefined ? 0 : found.findIndex(({ id }) => id === after) + 1
      const page = found.slice(start, start + limit)
      const last = page.at(-1)?.id
      return Promise.resolve({
        approvals: page,
        ...(start + limit < found.length && last !== undefined && { next: last }),
      })
    },
  }
  render(<HistoryPage api={api} />)
  await waitFor(() => expect(screen.getAllByRole('listitem')).toHaveLength(2))
  expect(lines().map(({ textContent }) => textContent)).toEqual([
    expect.stringMatching(/^PayRun payDeniedHanako · /),
    expect.stringMatching(/^SendSent \$50\.00DoneYou · /),
  ])
  await user.click(lines()[0] ?? document.body)
  expect(screen.getByText('Denied by').parentElement?.textContent).toBe('Denied byMari')
  expect(screen.getByText('Reason').parentElement?.textContent).toBe('ReasonToo much')
  expect(screen.getByText('Understood from: “no, thanks”')).toBeDefined()
  await user.click(lines()[0] ?? document.body)
  expect(screen.getByText('txn_1')).toBeDefined()
  await user.click(screen.getByRole('button', { name: 'Load more' }))
  await waitFor(() => expect(screen.getAllByRole('listitem')).toHaveLength(3))
  await user.selectOptions(screen.getByLabelText('Tool'), 'send')
  await waitFor(() => expect(screen.getAllByRole('listitem')).toHaveLength(1))
  await user.selectOptions(screen.getByLabelText('Requested by'), 'You')
  await user.selectOptions(screen.getByLabelText('State'), 'Denied')
  await waitFor(() =>
    expect(queries.at(-1)).toBe(JSON.stringify([['denied'], 'send', 'me', undefined])),
  )
})

test('[RE451] the response of an earlier filter is not shown, and a failure is reported', async () => {
  const answers: ((names: string[] | Error) => void)[] = []
  const api: HistoryApi = {
    listApprovalHistory: () =>
      new Promise((resolve, reject) => {
        answers.push((names) =>
          names instanceof Error
            ? reject(names)
            : resolve({ approvals: names.map((name) => approval(name, { state: 'denied' })) }),
        )
      }),
  }
  render(<HistoryPage api={api} />)
  expect(screen.getByText('Loading…')).toBeDefined()
  const late = answers.at(-1)
  await user.selectOptions(screen.getByLabelText('State'), 'All')
  await act(async () => answers.at(-1)?.(['new']))
  await act(async () => late?.(['old']))
  expect(screen.getAllByRole('listitem').map((item) => item.getAttribute('aria-label'))).toEqual([
    'Run new',
  ])
  await user.selectOptions(screen.getByLabelText('State'), 'Denied')
  expect(screen.queryByRole('listitem')).toBeNull()
  await act(async () => answers.at(-1)?.(new TypeError('network')))
  expect(screen.getByText('The list could not be refreshed. It may be out of date.')).toBeDefined()
})

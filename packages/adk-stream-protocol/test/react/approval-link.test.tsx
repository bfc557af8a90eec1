import { render, screen, waitFor } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { StrictMode } from 'react'
import { afterEach, expect, test } from 'vitest'

import { type AdkApi, readApprovalLinkUrl, toApprovalLinkUrl } from '../../src/client/index.ts'
import {
  AdkProvider,
  ApprovalInbox,
  LinkedApprovalView,
  useApprovalLink,
  useInbox,
} from '../../src/react/index.ts'
import { ShareApproval } from '../../src/react/components/share-approval.tsx'
import { callPayment } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { TestBrowser } from './support/chat-page.tsx'

afterEach(() => window.sessionStorage.clear())

const user = userEvent.setup()

interface LinkPageProps {
  readonly api: AdkApi
  readonly link: { readonly approvalId: string; readonly token: string }
}

function LinkPage({ api, link }: LinkPageProps) {
  return <LinkedApprovalView link={useApprovalLink(api, link)} />
}

function InboxPage({ api }: { readonly api: AdkApi }) {
  const { approvals, decide } = useInbox(api)
  return <ApprovalInbox approvals={approvals} onDecide={decide} />
}

test('[RE453] the token of a link is in the fragment of its URL', () => {
  const link = { approvalId: 'adk-1&x=#', token: 'a_b-c' }
  const url = new URL(toApprovalLinkUrl('https://example.com/approve?x=1', link))
  expect(url.pathname + url.search).toBe('/approve?x=1')
  expect(readApprovalLinkUrl(url.hash)).toEqual(link)
  expect(readApprovalLinkUrl('#other')).toBeUndefined()
  expect(readApprovalLinkUrl('')).toBeUndefined()
})

test('[RE453] an entry that waits for another person shares a link, and that person decides with it', async () => {
  await using testBridge = await TestBridge.open({
    approvals: {
      process_payment: { chain: [{ principals: ['hanako'] }, { roles: ['manager'] }] },
    },
    approvalLinks: { issue: ({ step }) => ({ roles: step.roles }) },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  await using other = new TestBrowser(testBridge, 'sse', 'taro')
  const page = testBridge.page()
  const text = `${callPayment(50)}[[then]][[say Paid.]]`
  await page.post({
    id: 'chat-1',
    messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text }] }],
  })
  const [asked] = await page.inbox()
  await page.decide(asked?.id ?? '', { approved: true })
  const shareApproval = async (approvalId: string) => {
    const { token, expiresAt } = await browser.api.createApprovalLink(approvalId)
    return { url: toApprovalLinkUrl('https://example.com/', { approvalId, token }), expiresAt }
  }
  const view = render(
    <AdkProvider shareApproval={shareApproval}>
      <InboxPage api={browser.api} />
    </AdkProvider>,
  )
  await user.click(await screen.findByRole('button', { name: 'Ask another person…' }))
  const input = await screen.findByLabelText<HTMLInputElement>('Link to this approval')
  await waitFor(() => expect(document.activeElement).toBe(input))
  const code = await screen.findByRole('img', { name: 'QR code of the link below' })
  expect(code.querySelector('path')?.getAttribute('d')).toMatch(/^M4 4h1v1h-1z/)
  const link = readApprovalLinkUrl(new URL(input.value).hash) ?? { approvalId: '', token: '' }
  view.unmount()

  // A program that checks links loads the page. That does not open the link, also if effects run twice.
  const opened = render(
    <StrictMode>
      <LinkPage api={other.api} link={link} />
    </StrictMode>,
  )
  await user.click(await screen.findByRole('button', { name: 'Show the request' }))
  await screen.findByRole('button', { name: 'Approve' })
  expect(await page.history(link.approvalId)).toEqual([
    'requested',
    'voted',
    'link-created',
    'link-opened',
  ])
  expect(screen.getByText(/You were asked by/).textContent).toContain('hanako')
  opened.unmount()
  // After a reload the URL has no token any more.
  const reloaded = render(<LinkPage api={other.api} link={{ ...link, token: '' }} />)
  await user.click(await screen.findByRole('button', { name: 'Approve' }))
  await screen.findByText(/Your decision was recorded/)
  await page.untilState(link.approvalId, 'succeeded')
  expect(testBridge.wallet.payments).toHaveLength(1)
  reloaded.unmount()
  const late = render(<LinkPage api={other.api} link={link} />)
  await user.click(await screen.findByRole('button', { name: 'Show the request' }))
  await screen.findByText(/^This link was used/)
  late.unmount()
})

test.each(['http://localhost:5173/', 'http://127.0.0.1:8000/', 'http://[::1]:8000/'])(
  '[RE453] a link to %s has no QR code, and says that only this machine can open it',
  async (base) => {
    const shareApproval = async (approvalId: string) => ({
      url: toApprovalLinkUrl(base, { approvalId, token: 'secret' }),
      expiresAt: 0,
    })
    const view = render(
      <AdkProvider shareApproval={shareApproval}>
        <ShareApproval approvalId="one" />
      </AdkProvider>,
    )
    await user.click(screen.getByRole('button', { name: 'Ask another person…' }))
    await screen.findByText(/only this machine can open this address/)
    expect(screen.getByLabelText<HTMLInputElement>('Link to this approval').value).toContain(base)
    expect(screen.queryByRole('img')).toBeNull()
    view.unmount()
  },
)

test('[RE453] a link that cannot be created is reported, and without `shareApproval` there is no button', async () => {
  const approval = {
    id: 'one',
    state: 'requested',
    toolName: 'pay',
    args: {},
    requestedAt: 0,
    deadline: Date.now() + 60_000,
    approvals: { given: 1, needed: 2 },
    voted: true,
    step: 1,
    own: true,
    mayDecide: false,
    whyNot: 'voted',
  }
  const inbox = <ApprovalInbox approvals={[approval]} onDecide={() => undefined} />
  const view = render(inbox)
  expect(screen.queryByRole('button', { name: 'Ask another person…' })).toBeNull()
  view.rerender(
    <AdkProvider shareApproval={() => Promise.reject(new Error('no'))}>{inbox}</AdkProvider>,
  )
  await user.click(screen.getByRole('button', { name: 'Ask another person…' }))
  await waitFor(() =>
    expect(screen.getByRole('alert').textContent).toContain('could not be created'),
  )
})

import { requestInputTool } from '@google/adk'
import { act, render, screen, waitFor, within } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { afterEach, expect, test, vi } from 'vitest'

import type { WaitingDecision } from '../../src/client/api/decision-outbox.ts'
import {
  AdkProvider,
  ApprovalInbox,
  ConnectionNotice,
  MessageList,
  useAttention,
  useInbox,
} from '../../src/react/index.ts'
import type { InboxApi } from '../../src/react/hooks/use-approval-lists.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { GRANTS, listGrants } from '../grants/support/grants.ts'
import { TestBrowser } from './support/chat-page.tsx'
import { LANGUAGES } from './support/languages.ts'
import { answer, approvalPart, payment } from './support/messages.ts'

const user = userEvent.setup()
const PAY = `${callPayment(50)}[[then]][[say Paid.]]`
const NOT_SENT = 'Your approval is waiting for the connection. Not sent yet.'
const OFFLINE = 'Not sent: you are offline. Send it again when the connection is back.'
const everyone = { principals: ['hanako', 'taro'] }

afterEach(() => void vi.restoreAllMocks())

/** The network of the page, as the browser reports it too. */
function switchNetwork(browser: TestBrowser, isOnline: boolean): void {
  browser.isOffline = !isOnline
  vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(isOnline)
  act(() => void window.dispatchEvent(new window.Event(isOnline ? 'online' : 'offline')))
}

function InboxView({ api }: { readonly api: InboxApi }) {
  const inbox = useInbox(api)
  return (
    <ApprovalInbox
      approvals={inbox.approvals}
      onDecide={inbox.decide}
      refusals={inbox.refusals}
      deciding={inbox.deciding}
      waitingDecisions={inbox.waitingDecisions}
      onCancelDecision={inbox.cancelDecision}
    />
  )
}

/** The places of a page that say how many approvals wait for the person. */
function Counters({ api }: { readonly api: InboxApi }) {
  const inbox = useInbox(api)
  useAttention(inbox.approvals, { title: 'Chat' })
  return (
    <>
      <output data-testid="undecided">{inbox.undecided.length}</output>
      <ApprovalInbox approvals={inbox.approvals} onDecide={inbox.decide} />
    </>
  )
}

const inList = () => within(screen.getByRole('region', { name: 'Pending approvals' }))
const inChat = () => within(screen.getByRole('log'))
const decisions = ({ sent }: TestBrowser): string[] =>
  sent.filter((request) => request.startsWith('POST /approvals/'))

test('[RE690] a vote waits for the connection in the chat and in the inbox, can be taken back, and is sent once', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { deciders: everyone, approvers: 2 } },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  const list = render(<InboxView api={browser.api} />)
  page.say(PAY)
  await inChat().findByRole('button', { name: 'Approve' })
  await inList().findByRole('button', { name: 'Approve' })
  await page.untilReady()
  switchNetwork(browser, false)
  await user.click(inChat().getByRole('button', { name: 'Approve' }))
  await inChat().findByText(NOT_SENT)
  // The same decision, wherever it was made.
  await inList().findByText(NOT_SENT)
  expect(screen.queryByRole('button', { name: 'Approve' })).toBeNull()
  expect(inChat().getByText(NOT_SENT)).toBe(document.activeElement)
  await user.click(inList().getByRole('button', { name: 'Take back' }))
  await user.click(await inChat().findByRole('button', { name: 'Approve' }))
  await inChat().findByText(NOT_SENT)
  expect(page.chat.refusals.size).toBe(0)
  switchNetwork(browser, true)
  await page.until('You approved this (1 of 2)')
  expect(decisions(browser)).toHaveLength(1)
  await waitFor(() => expect(screen.queryByText(NOT_SENT)).toBeNull())
  list.unmount()
})

test('[RE379] [RE883] every place of the page says how many approvals wait for this person: before and after a vote, while it waits for the connection, and after a decision elsewhere', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { deciders: everyone, approvers: 2 } },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  await using other = new TestBrowser(testBridge, 'sse', 'taro')
  const page = browser.show({ api: browser.api })
  const counters = render(<Counters api={browser.api} />)
  const list = screen.getByRole('region', { name: 'Pending approvals' })
  const readPlaces = () => ({
    title: document.title,
    undecided: screen.getByTestId('undecided').textContent,
    list: list.querySelector('.adk-hidden[role=status]')?.textContent,
    asksInChat: document
      .querySelector('.adk-messages + [aria-live=polite]')
      ?.textContent.includes('Waiting for your decision.'),
  })
  const one = { title: '(1) Chat', undecided: '1', list: 'Approvals: 1 pending' }
  const none = { title: 'Chat', undecided: '0', list: 'Approvals: 0 pending' }
  const expectPlaces = (places: ReturnType<typeof readPlaces>) =>
    waitFor(() => expect(readPlaces()).toEqual(places))

  page.say(PAY)
  await expectPlaces({ ...one, asksInChat: true })
  await page.untilReady()
  switchNetwork(browser, false)
  await user.click(inChat().getByRole('button', { name: 'Approve' }))
  await inChat().findByText(NOT_SENT)
  // The server does not have the vote yet, and the person has nothing left to decide.
  await expectPlaces({ ...one, asksInChat: false })
  switchNetwork(browser, true)
  await page.until('You approved this (1 of 2)')
  await expectPlaces({ ...none, asksInChat: false })

  const [approval] = await browser.api.listApprovals()
  await browser.api.withdrawVote(approval?.id ?? '')
  await expectPlaces({ ...one, asksInChat: true })
  await other.api.decide(approval?.id ?? '', { approved: false })
  await expectPlaces({ ...none, asksInChat: false })
  counters.unmount()
})

test('[RE691] a decision that waited does not count if somebody else has decided meanwhile', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { deciders: everyone, approvers: 2 } },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  await using other = new TestBrowser(testBridge, 'sse', 'taro')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await screen.findByRole('button', { name: 'Approve' })
  await page.untilReady()
  const [approval] = await other.api.listApprovals()
  switchNetwork(browser, false)
  await page.click('Approve')
  await page.until(NOT_SENT)
  await other.api.decide(approval?.id ?? '', { approved: false })
  switchNetwork(browser, true)
  await page.until('has already been decided')
  expect(page.text).not.toContain(NOT_SENT)
  expect(page.chat.refusedDecisions).toEqual([])
  expect(testBridge.wallet.payments).toEqual([])
})

test('[RE691] a refused decision that waited is reported in another chat, if its own is closed', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { deciders: everyone, approvers: 2 } },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  await using other = new TestBrowser(testBridge, 'sse', 'taro')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await screen.findByRole('button', { name: 'Approve' })
  await page.untilReady()
  const [approval] = await other.api.listApprovals()
  switchNetwork(browser, false)
  await page.click('Approve')
  await page.until(NOT_SENT)
  page.leave()
  await other.api.decide(approval?.id ?? '', { approved: false })
  switchNetwork(browser, true)
  await waitFor(() => expect(browser.api.refusedDecisions[0]?.approval).toBeDefined())
  const next = browser.show({ api: browser.api, id: 'chat-2' })
  const view = render(<ConnectionNotice chat={next.chat} />)
  const alert = within(view.container).getByRole('alert')
  expect(alert.textContent).toMatch(/^Your approval did not count.*process_payment.*decided/)
  await user.click(within(view.container).getByRole('button', { name: 'OK' }))
  expect(browser.api.refusedDecisions).toEqual([])
  view.unmount()
})

test('[RE691] [RE361] an approval of the inbox that waited asks again if the preview has changed', async () => {
  let balance = 100
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { preview: () => ({ headline: `Balance ${balance}` }) } },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  const list = render(<InboxView api={browser.api} />)
  page.say(PAY)
  await inList().findByText('Balance 100')
  await page.untilReady()
  switchNetwork(browser, false)
  await user.click(await inList().findByRole('button', { name: 'Approve' }))
  await inList().findByText(NOT_SENT)
  balance = 70
  switchNetwork(browser, true)
  await inList().findByText('Balance 70')
  await inList().findByRole('button', { name: 'Approve' })
  expect(testBridge.wallet.payments).toEqual([])
  list.unmount()
})

test('[RE690] a vote whose response was lost is sent again, and counts once', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { deciders: everyone, approvers: 2 } },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await screen.findByRole('button', { name: 'Approve' })
  await page.untilReady()
  browser.losesResponses = true
  await page.click('Approve')
  await page.until('You approved this (1 of 2)')
  await waitFor(() => expect(decisions(browser)).toHaveLength(2))
  await waitFor(() => expect(page.chat.waitingDecisions.size).toBe(0))
  expect([page.chat.refusals.size, page.chat.votes.size]).toEqual([0, 1])
})

test('[RE633] an approval of high severity does not wait for the connection, and a denial does', async () => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { severity: 'high' } },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  const list = render(<InboxView api={browser.api} />)
  page.say(PAY)
  await inList().findByRole('button', { name: 'Approve' })
  await inChat().findByRole('button', { name: 'Approve' })
  await page.untilReady()
  switchNetwork(browser, false)
  for (const place of [inChat(), inList()]) {
    // Pressed twice in place of a hold.
    place.getByRole('button', { name: 'Approve' }).focus()
    await user.keyboard('{Enter}')
    const now = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 1_000)
    await user.keyboard('{Enter}')
    now.mockRestore()
    await place.findByText(OFFLINE)
    expect(place.queryByText(NOT_SENT)).toBeNull()
  }
  await user.click(inList().getByRole('button', { name: 'Deny…' }))
  await user.type(inList().getByLabelText('Reason (optional)'), 'no{Enter}')
  await inList().findByText('Your denial is waiting for the connection. Not sent yet. Reason: no')
  switchNetwork(browser, true)
  await page.until('Denied. Nothing was done.')
  expect(testBridge.wallet.payments).toEqual([])
  list.unmount()
})

test.each([{ hasApi: true }, { hasApi: false }])(
  '[GR1640] a decision with a grant does not wait for the connection in a chat (with an `api`: $hasApi)',
  async ({ hasApi }) => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: { grants: GRANTS } },
    })
    await using browser = new TestBrowser(testBridge, 'sse')
    const page = browser.show(hasApi ? { api: browser.api } : {})
    page.say(PAY)
    await user.click(await inChat().findByRole('checkbox', { name: /^Do not ask again/ }))
    await page.untilReady()
    switchNetwork(browser, false)
    await page.click('Approve')
    await inChat().findByText(OFFLINE)
    expect(inChat().getByRole('checkbox', { name: /^Do not ask again/ })).toHaveProperty(
      'checked',
      true,
    )
    switchNetwork(browser, true)
    await page.click('Approve')
    await page.until('Paid.')
    await page.untilReady()
    expect(await listGrants(testBridge.page())).toHaveLength(1)
  },
)

test('[RE690] an answer waits for the connection, and is shown meanwhile', async () => {
  await using testBridge = await TestBridge.open({ tools: () => [requestInputTool] })
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  page.say('[[call adk_request_input {"message":"Which city?"}]][[then]][[say Thanks.]]')
  await user.type(await screen.findByLabelText('Your answer'), 'Nara')
  await page.untilReady()
  switchNetwork(browser, false)
  await page.click('Send answer')
  await page.until('Your answer is waiting for the connection. Not sent yet.')
  expect(page.text).toContain('Nara')
  await page.click('Take back')
  expect(await screen.findByLabelText('Your answer')).toHaveProperty('value', 'Nara')
  await page.click('Send answer')
  switchNetwork(browser, true)
  await page.until('Thanks.')
  expect(testBridge.lastPrompt).toContain('Nara')
})

const WAITING = { decision: { approved: false, reason: '高い' }, mayHaveArrived: false }

test.each([
  ['ja', WAITING, '拒否は接続の回復を待っています。まだ送信されていません。理由：高い', 1],
  [
    'ja',
    { decision: { approved: true }, mayHaveArrived: true },
    '承認の送信中に接続が切れました。接続が回復したらもう一度送信します。二重に処理されることはありません。',
    0,
  ],
  [
    'en',
    { decision: { approved: true, args: { amount: 40 } }, mayHaveArrived: true },
    'The connection was lost while your approval was being sent. It will be sent again when the connection is back, and counts once.',
    0,
  ],
] satisfies ['en' | 'ja', WaitingDecision, string, number][])(
  '[RE690] a card says in %s what waits: %j',
  (locale, waiting, text, buttons) => {
    render(
      <AdkProvider labels={LANGUAGES[locale]}>
        <MessageList
          messages={[answer(payment(), approvalPart({ approvers: 2 }))]}
          waitingDecisions={new Map([['approval-1', waiting]])}
          onCancelDecision={() => true}
        />
      </AdkProvider>,
    )
    expect(screen.getByText(text)).toBeDefined()
    expect(screen.queryAllByRole('button', { name: /Take back|取り消す/ })).toHaveLength(buttons)
    expect(screen.queryByRole('button', { name: /^Approve|^承認/ })).toBeNull()
  },
)

test('[CL853] a message that was written without a connection is sent after the decision that waited too', async () => {
  await using testBridge = await TestBridge.open({ whilePending: 'keep' })
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await inChat().findByRole('button', { name: 'Approve' })
  await page.untilReady()
  switchNetwork(browser, false)
  page.say('[[say Hello there.]]')
  await waitFor(() => expect(page.chat.problem?.kind).toBe('disconnected'))
  await user.click(inChat().getByRole('button', { name: 'Approve' }))
  await inChat().findByText(/^Your (?:approval|denial) will be sent when the connection is back/)
  switchNetwork(browser, true)
  await inChat().findByText('Hello there.')
  await inChat().findByText('Paid.')
  expect(testBridge.wallet.payments).toHaveLength(1)
  const { messages } = await browser.api.loadChat(page.chat.id)
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
})

test('[CL853] a message that the server refuses stays with its error when an approval is decided', async () => {
  await using testBridge = await TestBridge.open({
    whilePending: 'keep',
    limits: { maxTextLength: 200 },
  })
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await inChat().findByRole('button', { name: 'Approve' })
  await page.untilReady()
  const long = 'too long '.repeat(50)
  page.say(long)
  await waitFor(() => expect(page.chat.problem?.kind).toBe('refused'))
  await user.click(inChat().getByRole('button', { name: 'Approve' }))
  await inChat().findByText('Paid.')
  await waitFor(() => expect(page.chat.problem?.kind).toBe('refused'))
  expect(page.chat.messages.at(-1)).toMatchObject({ role: 'user', parts: [{ text: long }] })
  expect(testBridge.wallet.payments).toHaveLength(1)
})

import { render, screen, within } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { expect, test } from 'vitest'

import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import type { Notice } from '../../src/modules/notify/notice.ts'
import type { GrantOffer, ShownGrant } from '../../src/protocol/grants.ts'
import type { AdkApi } from '../../src/client/index.ts'
import {
  AdkProvider,
  ApprovalInbox,
  type Decision,
  GrantList,
  MessageList,
  useInbox,
} from '../../src/react/index.ts'
import { openWithClocks } from '../../src/store/sqlite/sqlite-store.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { BUDGET, GRANTS, listGrants, pay } from '../grants/support/grants.ts'
import { TestMetrics } from '../support/metrics.ts'
import { TestBrowser, WAYS } from './support/chat-page.tsx'
import { LANGUAGES } from './support/languages.ts'
import { answer, approvalPart, payment } from './support/messages.ts'

const user = userEvent.setup()

const OFFER: GrantOffer = {
  id: 'offer-1',
  effect: 'approve',
  free: [],
  budget: { argument: 'amount', max: 100 },
  maxUses: 5,
  expiresMs: 30 * 60_000,
  scope: 'chat',
}
const DENIAL: GrantOffer = { id: 'offer-2', effect: 'deny', free: [], scope: 'chat' }

function showCard(locale: keyof typeof LANGUAGES = 'en'): [string, Decision][] {
  const decided: [string, Decision][] = []
  render(
    <AdkProvider labels={LANGUAGES[locale]}>
      <MessageList
        messages={[answer(payment(), approvalPart({ offers: [OFFER, DENIAL] }))]}
        onDecide={(id, decision) => void decided.push([id, decision])}
      />
    </AdkProvider>,
  )
  return decided
}

test.each([
  [
    'en',
    /^Do not ask again in this chat for further calls with recipient: 花子.*, amount up to 100 in total, at most 5, for 30 minutes$/,
  ],
  [
    'ja',
    /^このチャットでは、同じ内容（recipient: 花子.*）の操作を次から確認なしで許可する（amountは合計100まで、最大5回、今から30 ?分）$/,
  ],
] as const)('[GR1640] a card says in words what a grant allows, in %s', (locale, words) => {
  showCard(locale)
  const box = screen.getByRole('checkbox', { name: words })
  expect(box).toHaveProperty('checked', false)
})

test('[GR1640] a person chooses a grant with the keyboard, and decides with it', async () => {
  const decided = showCard()
  screen.getByRole('checkbox', { name: /^Do not ask again/ }).focus()
  await user.keyboard(' ')
  await user.click(screen.getByRole('button', { name: 'Approve' }))
  expect(decided).toEqual([['approval-1', { approved: true, offer: 'offer-1' }]])
})

test('[GR1640] a denial takes only the grant that denies, and a decision without a choice takes none', async () => {
  const decided = showCard()
  await user.click(screen.getByRole('checkbox', { name: /^Do not ask again/ }))
  await user.click(screen.getByRole('button', { name: 'Deny…' }))
  const deny = within(screen.getByRole('group', { name: /payment/i })).getByRole('button', {
    name: 'Deny',
  })
  await user.click(deny)
  expect(decided.at(-1)).toEqual(['approval-1', { approved: false }])
  await user.click(
    screen.getByRole('checkbox', { name: 'Deny all calls of this tool in this chat' }),
  )
  await user.click(deny)
  expect(decided.at(-1)).toEqual(['approval-1', { approved: false, offer: 'offer-2' }])
})

test.each(
  WAYS.flatMap((way) => [
    { way, effect: 'approve' as const },
    { way, effect: 'deny' as const },
  ]),
)(
  '[GR1640] [GR1620] [GR1628] a chat without an `api` sends the chosen grant ($effect) with the decision over $way',
  async ({ way, effect }) => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: { grants: GRANTS } },
    })
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show()
    page.say(pay(50))
    if (effect === 'deny') await page.click('Deny…')
    const name = effect === 'deny' ? /^Deny all calls/ : /^Do not ask again/
    await user.click(await screen.findByRole('checkbox', { name }))
    await page.click(effect === 'deny' ? 'Deny' : 'Approve')
    await page.until('Done.')
    await page.untilReady()
    expect(await listGrants(testBridge.page())).toMatchObject([{ effect }])
    expect(testBridge.wallet.payments).toHaveLength(effect === 'deny' ? 0 : 1)
  },
)

test('[GR1640] the card of a covered call says that a grant decided', () => {
  const grant = { id: 'grant-1', at: Date.now() }
  const part = approvalPart({ state: 'approved', by: { own: true, others: [] }, grant })
  render(
    <AdkProvider>
      <MessageList messages={[answer(payment({ state: 'output-available', output: {} }), part)]} />
    </AdkProvider>,
  )
  expect(screen.getByRole('group', { name: /payment/i }).textContent).toContain('By your grant of')
})

const GRANT: ShownGrant = {
  id: 'grant-1',
  state: 'open',
  effect: 'approve',
  free: [],
  budget: { argument: 'amount', max: 100 },
  spent: 40,
  maxUses: 5,
  uses: 2,
  scope: 'chat',
  chatId: 'chat-1',
  toolName: 'process_payment',
  title: 'Payment',
  pinned: { recipient: '花子' },
  at: Date.now(),
  expiresAt: Date.now() + 60_000,
}

test('[GR1641] the list shows the grants of a chat with what is left, revokes one by keyboard, and says if that failed', async () => {
  let isOffline = true
  let grants: ShownGrant[] = [
    GRANT,
    { ...GRANT, id: 'grant-2', chatId: 'chat-2' },
    {
      ...GRANT,
      id: 'grant-3',
      chatId: 'chat-2',
      scope: 'person',
      state: 'suspended',
      title: 'Refund',
    },
  ]
  const api = {
    listGrants: async () => grants,
    revokeGrant: async (id: string) => {
      if (isOffline) throw new TypeError('network: offline')
      grants = grants.filter((grant) => grant.id !== id)
    },
    watch: () => () => undefined,
  }
  render(
    <AdkProvider>
      <GrantList api={api} chatId="chat-1" />
    </AdkProvider>,
  )
  const list = await screen.findByRole('region', { name: 'Decided without asking' })
  const items = (): string[] =>
    within(list)
      .getAllByRole('listitem')
      .map(({ textContent }) => textContent)
  expect(items()).toHaveLength(2)
  expect(items()[0]).toContain('Payment · recipient: 花子 · 2 of 5 used, amount 40 of 100 · until')
  expect(items()[1]).toContain('suspended: text from outside entered the chat')
  within(list).getByRole('button', { name: 'Revoke: Payment, recipient: 花子' }).focus()
  await user.keyboard('{Enter}')
  await expect.poll(() => within(list).getByRole('alert').textContent).toContain('Not revoked')
  expect(items()).toHaveLength(2)
  isOffline = false
  await user.keyboard('{Enter}')
  await expect.poll(items).toHaveLength(1)
  expect(within(list).getByRole('alert').textContent).toBe('')
})

test('[GR1634] [NT1579] [OB300] a person who approves ten calls in a row is reported, and reads why they cannot give a grant', async () => {
  await using folder = await temporaryDirectory()
  await using metrics = new TestMetrics()
  const told: Notice[] = []
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: { grants: [BUDGET] } },
    notify: {
      channels: { risk: { send: async (notice) => void told.push(notice) } },
      plan: () => [],
      fastApprovals: { tell: 'risk', decisions: 10 },
    },
    // Each decision takes no time, on any machine.
    openStore: () =>
      openWithClocks({ path: folder.file('frozen.db') }, { clock: String(Date.now()) }),
  })
  const page = testBridge.page()
  const ask = async (count: number): Promise<void> => {
    const text = `${callPayment(5).repeat(count)}[[then]][[say Paid.]]`
    const messages = [{ id: `u-${count}`, role: 'user', parts: [{ type: 'text', text }] }]
    await page.post({ id: `chat-${count}`, messages })
  }
  await ask(10)
  for (const { id } of await page.inbox()) await page.decide(id, { approved: true })
  await expect.poll(() => told.map(({ type }) => type)).toEqual(['approver.fast'])
  expect(told[0]).toMatchObject({ by: 'hanako', pace: { decisions: 10, fast: 10 } })
  expect(await metrics.read('approval.time_to_decision')).toEqual({
    'process_payment approved': 10,
  })
  await ask(1)
  await using browser = new TestBrowser(testBridge, 'sse')
  const show = async (locale: keyof typeof LANGUAGES) => {
    const { unmount } = render(
      <AdkProvider labels={LANGUAGES[locale]}>
        <InboxPage api={browser.api} />
      </AdkProvider>,
    )
    const box = await screen.findByRole('checkbox')
    await user.click(box)
    const name = LANGUAGES[locale].approval.approve
    const approve = () => user.click(screen.getByRole('button', { name }))
    await approve()
    const refused = (await screen.findByRole('alert')).textContent
    return { box, approve, refused, unmount }
  }
  const japanese = await show('ja')
  expect(japanese.refused).toContain('許可を選ばずに、もう一度お試しください。')
  japanese.unmount()
  const { box, approve, refused, unmount } = await show('en')
  expect(refused).toContain('You have approved many calls at once.')
  expect(testBridge.wallet.payments).toHaveLength(10)
  await user.click(box)
  await approve()
  await expect.poll(() => testBridge.wallet.payments).toHaveLength(11)
  unmount()
})

function InboxPage({ api }: { readonly api: AdkApi }) {
  const { approvals, refusals, decide } = useInbox(api)
  return <ApprovalInbox approvals={approvals} refusals={refusals} onDecide={decide} />
}

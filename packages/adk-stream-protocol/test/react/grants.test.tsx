import { render, screen, within } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { expect, test } from 'vitest'

import type { GrantOffer, ShownGrant } from '../../src/protocol/grants.ts'
import { AdkProvider, type Decision, GrantList, MessageList } from '../../src/react/index.ts'
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
    /^Do not ask again in this chat for further calls with recipient: 花子.*, up to 100 in total, at most 5, for 30 minutes$/,
  ],
  [
    'ja',
    /^このチャットでは、同じ内容（recipient: 花子.*）の操作を次から確認なしで許可する（合計100まで、最大5回、今から30 ?分）$/,
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

test('[GR1641] the list shows the grants of a chat with what is left, and revokes one by keyboard', async () => {
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
    revokeGrant: async (id: string) => void (grants = grants.filter((grant) => grant.id !== id)),
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
  expect(items()[0]).toContain('Payment recipient: 花子 2 of 5 used, 40 of 100 · until')
  expect(items()[1]).toContain('suspended: text from outside entered the chat')
  within(list).getByRole('button', { name: 'Revoke: Payment' }).focus()
  await user.keyboard('{Enter}')
  await expect.poll(items).toHaveLength(1)
})

import type { PolicyVerdict } from 'adk-stream-protocol/server'
import { expect, test } from 'vitest'

import { openSqliteWallets } from '../src/agent/wallet/sqlite-wallets.ts'
import { createApprovalPolicy } from '../src/server/approval-policy.ts'
import type { Wallets } from '../src/agent/wallet/wallets.ts'
import type { Language } from '../src/demo-info.ts'

const OWNER = { principals: ['hanako'] }

test.each([
  [50, 'medium', [OWNER]],
  [99.99, 'medium', [OWNER]],
  [500, 'medium', [OWNER]],
  [500.01, 'high', [OWNER, { roles: ['approver'] }]],
])(
  '[DM40] a payment of %d has the severity %s, and the approvers of that severity',
  async (...row) => {
    const [amount, severity, chain] = row
    expect(await getVerdict('process_payment', { amount, recipient: 'Alice' })).toMatchObject({
      severity,
      chain,
      deadlineMs: 1000,
      idempotent: true,
    })
  },
)

test('[DM34] the preview shows the balance before and after, in the language of the person', async () => {
  const small = { amount: 50, recipient: 'Alice', description: 'Lunch' }
  expect(await preview(small)).toEqual({
    action: '$50.00',
    amount: { value: 50, currency: 'USD', available: 1000, aloneUpTo: 500 },
    changes: [{ label: 'Balance', before: '$1,000.00', after: '$950.00' }],
    lines: [{ label: 'For', value: 'Lunch' }],
  })
  expect(await preview(small, 'ja')).toMatchObject({
    action: '50.00ドル',
    changes: [{ label: '残高', before: '1,000.00ドル', after: '950.00ドル' }],
  })
  expect(await preview(small, 'en', 'approver')).toMatchObject({
    changes: [{ label: 'Balance of the requester' }],
  })
})

test.each([
  [{ amount: 2000 }, 'Not enough money: the balance is $1,000.00. This payment would fail.'],
  [
    { amount: -5 },
    'The amount must be positive, with at most two decimals. This payment would fail.',
  ],
  [
    { amount: 12.345 },
    'The amount must be positive, with at most two decimals. This payment would fail.',
  ],
  [
    { amount: 5, currency: 'EUR' },
    'The wallet holds US dollars. EUR cannot be sent. This payment would fail.',
  ],
  [
    { amount: 'all of it' },
    'The amount must be positive, with at most two decimals. This payment would fail.',
  ],
  [{ amount: 5, recipient: ' \u00A0 ' }, 'The recipient is missing. This payment would fail.'],
  [{ amount: 5, recipient: '\u200B\uFEFF' }, 'The recipient is missing. This payment would fail.'],
])('[DM34] the preview of %j shows why the payment would fail', async (args, blocked) => {
  expect(await preview({ recipient: 'Alice', ...args })).toMatchObject({ blocked })
})

test.each([
  [
    { success: true, transaction_id: 'txn_1', amount: 0.1, wallet_balance: 999.9 },
    {
      changes: [{ label: 'Balance', before: '$1,000.00', after: '$999.90' }],
      lines: [{ label: 'Transaction', value: 'txn_1' }],
    },
  ],
  [
    { success: false, error: 'Insufficient funds.', wallet_balance: 0.05 },
    { blocked: 'Not enough money: the balance is $0.05.' },
  ],
  [{ success: false, error: 'This call was already used.' }, undefined],
  ['gone', undefined],
])('[DM34] the receipt of %j', async (output, receipt) => {
  const terms = await getVerdict('process_payment', { amount: 0.1, recipient: 'Alice' })
  const created =
    isTerms(terms) && terms.receipt?.(output, context({ amount: 0.1, recipient: 'Alice' }))
  expect(await created).toEqual(receipt)
})

test('[DM34] an invalid payment still needs approval', async () => {
  const terms = await getVerdict('process_payment', { amount: 'all of it' })
  expect(terms).toMatchObject({ severity: 'medium', chain: [OWNER] })
})

test('[DM42] the approval of the location says who receives the coordinates', async () => {
  expect(await getVerdict('get_location', {})).toMatchObject({
    title: 'Location',
    hint: 'Your browser may also ask. Your coordinates are sent to the model.',
    severity: 'low',
  })
})

test('[DM510] a typed reply can decide the location, and never a payment', async () => {
  expect(await getVerdict('get_location', {})).toMatchObject({ acceptReplies: true })
  const payment = await getVerdict('process_payment', { amount: 1, recipient: 'Alice' })
  expect(isTerms(payment) && payment.acceptReplies).toBeUndefined()
})

test.each([
  ['a destructive tool of an MCP server', 'notes', {}, 'Notebook'],
  ['another tool of an MCP server', 'notes', { destructiveHint: false }, undefined],
  ['a tool of the demo', undefined, {}, undefined],
])(
  '[DM522] the annotations of %s decide whether it needs approval',
  async (_what, server, hints, title) => {
    const policy = createApprovalPolicy({
      wallets: openSqliteWallets(':memory:'),
      languages: { of: () => 'en' },
      deadlineMs: 1000,
    })
    const own = typeof policy === 'function' ? policy : policy['*']
    const annotations = { ...ANNOTATIONS, ...hints }
    const call = { chat: CHAT, toolName: 'any', args: {}, annotations, ...(server && { server }) }
    const terms = typeof own === 'function' ? await own(call) : own
    expect(isTerms(terms) ? terms.title : undefined).toBe(title)
  },
)

const ANNOTATIONS = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
}
const CHAT = { appName: 'demo', principalId: 'hanako', chatId: 'chat-1' }

function context(args: Record<string, unknown>, reader = 'hanako') {
  return { chat: CHAT, toolName: 'process_payment', args, reader, annotations: ANNOTATIONS }
}

function isTerms(verdict: PolicyVerdict | undefined): verdict is Exclude<PolicyVerdict, boolean> {
  return typeof verdict === 'object'
}

async function preview(args: Record<string, unknown>, language: Language = 'en', reader?: string) {
  using wallets = openSqliteWallets(':memory:')
  const terms = await getVerdict('process_payment', args, language, wallets)
  return isTerms(terms) ? terms.preview?.(args, context(args, reader)) : undefined
}

async function getVerdict(
  toolName: string,
  args: Record<string, unknown>,
  language: Language = 'en',
  wallets: Wallets = openSqliteWallets(':memory:'),
) {
  const policy = createApprovalPolicy({
    wallets,
    languages: { of: () => language },
    deadlineMs: 1000,
  })
  const own = typeof policy === 'function' ? policy : policy[toolName]
  return typeof own === 'function'
    ? own({ chat: CHAT, toolName, args, annotations: ANNOTATIONS })
    : own
}

import { expect, test } from 'vitest'

import { openSqliteWallets } from '../src/agent/wallet/sqlite-wallets.ts'
import { createApprovalPolicy } from '../src/server/approval-policy.ts'
import type { Language } from '../src/server/languages.ts'

const OWNER = { principals: ['hanako'] }

test.each([
  [50, 'medium', [OWNER]],
  [99.99, 'medium', [OWNER]],
  [100, 'high', [OWNER]],
  [500, 'high', [OWNER]],
  [500.01, 'high', [OWNER, { roles: ['approver'] }]],
])('[DM40] a payment of %d is of %s risk, and the right people are asked', async (...row) => {
  const [amount, severity, chain] = row
  expect(await ask('process_payment', { amount, recipient: 'Alice' })).toMatchObject({
    severity,
    chain,
    deadlineMs: 1000,
    idempotent: true,
  })
})

test('[DM34] the hint tells what the wallet holds, in the language of the reader', async () => {
  const small = { amount: 50, recipient: 'Alice' }
  const large = { amount: 2000, recipient: 'Alice' }
  expect(await ask('process_payment', small)).toMatchObject({
    title: 'Payment',
    hint: 'Your wallet holds 1000 USD. A payment cannot be taken back.',
  })
  expect(await ask('process_payment', small, 'ja')).toMatchObject({ title: '送金' })
  expect(await ask('process_payment', large)).toMatchObject({
    hint: 'Your wallet holds only 1000 USD: the payment would be refused.',
  })
})

test('[DM34] a payment that makes no sense is asked about all the same', async () => {
  const terms = await ask('process_payment', { amount: 'all of it' })
  expect(terms).toMatchObject({ severity: 'medium', chain: [OWNER] })
})

test('[DM42] the position is asked about with what will become of it', async () => {
  expect(await ask('get_location', {})).toMatchObject({
    title: 'Location',
    hint: 'Your browser may ask you once more. The position goes to the model.',
    severity: 'low',
  })
})

async function ask(toolName: string, args: Record<string, unknown>, language: Language = 'en') {
  using wallets = openSqliteWallets(':memory:')
  const policy = createApprovalPolicy({
    wallets,
    languages: { of: () => language },
    deadlineMs: 1000,
  })
  const own = typeof policy === 'function' ? policy : policy[toolName]
  const chat = { appName: 'demo', principalId: 'hanako', chatId: 'chat-1' }
  return typeof own === 'function' ? own({ chat, toolName, args }) : own
}

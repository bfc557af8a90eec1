import type { Preview } from 'adk-stream-protocol/server'
import { z } from 'zod'

import { Cents, fromCents, toCents } from '../agent/wallet/wallets.ts'
import { formatMoney } from '../format-money.ts'
import type { Language } from '../demo-info.ts'

/** The person who reads a preview. */
interface Reader {
  readonly language: Language
  /** Whether the wallet belongs to the reader. */
  readonly isOwner: boolean
  /** Up to which amount one person decides. */
  readonly aloneUpTo: number
  /** The arguments of payments that are made before. */
  readonly earlier?: readonly unknown[]
}

// The model may send anything. A call with invalid arguments still needs approval, and the tool rejects it.
const Payment = z.object({
  amount: z.number().catch(0),
  recipient: z.string().catch(''),
  currency: z.string().catch('USD'),
  description: z.string().catch(''),
})

/** Describes a payment that waits for approval: what it leaves in the wallet, or why it would fail. */
export function previewPayment(
  args: unknown,
  now: Cents,
  { language, isOwner, aloneUpTo, earlier = [] }: Reader,
): Preview {
  const balance = earlier.reduce(pay, now)
  const labels = LABELS[language]
  const { amount, recipient, currency: written, description } = Payment.parse(args)
  const currency = written.trim().toUpperCase()
  const money = (cents: Cents | number): string => formatMoney(cents / 100, 'USD', language)
  const cents = toCents(amount)
  const blocked = findFault({ cents, currency, recipient, balance, labels, money })
  const label = isOwner ? labels.balance : labels.theirBalance
  return {
    action: formatMoney(amount, currency, language),
    ...(cents !== undefined &&
      currency === 'USD' && {
        amount: { value: fromCents(cents), currency, available: fromCents(balance), aloneUpTo },
      }),
    ...(blocked === undefined
      ? {
          changes: [{ label, before: money(balance), after: money(balance - (cents ?? 0)) }],
        }
      : { blocked: labels.wouldFail(blocked) }),
    ...(description !== '' && { lines: [{ label: labels.purpose, value: description }] }),
  }
}

/** Returns what a payment leaves of a balance: all of it, if the payment fails. */
function pay(balance: Cents, args: unknown): Cents {
  const { amount, currency } = Payment.parse(args)
  const cents = toCents(amount)
  const isPaid = currency.trim().toUpperCase() === 'USD' && cents !== undefined && cents <= balance
  return isPaid ? Cents.parse(balance - cents) : balance
}

const Result = z.union([
  z.object({
    success: z.literal(true),
    transaction_id: z.string(),
    amount: z.number(),
    wallet_balance: z.number(),
  }),
  z.object({ success: z.literal(false), wallet_balance: z.number().optional() }),
])

/** Describes a payment that was made, or why it was not. */
export function describeReceipt(
  args: unknown,
  output: unknown,
  { language }: Pick<Reader, 'language'>,
): Preview | undefined {
  const labels = LABELS[language]
  const { data } = Result.safeParse(output)
  if (!data) return undefined
  const money = (dollars: number): string => formatMoney(dollars, 'USD', language)
  if (data.success) {
    const after = data.wallet_balance
    const before = Math.round((after + data.amount) * 100) / 100
    return {
      changes: [{ label: labels.balance, before: money(before), after: money(after) }],
      lines: [{ label: labels.transaction, value: data.transaction_id }],
    }
  }
  const { amount, recipient, currency } = Payment.parse(args)
  const { wallet_balance: balance } = data
  const blocked =
    balance === undefined
      ? undefined
      : findFault({
          cents: toCents(amount),
          currency: currency.trim().toUpperCase(),
          recipient,
          balance: Math.round(balance * 100),
          labels,
          money: (cents) => money(cents / 100),
        })
  return blocked === undefined ? undefined : { blocked }
}

interface Faulty {
  readonly cents: Cents | undefined
  readonly currency: string
  readonly recipient: string
  readonly balance: number
  readonly labels: (typeof LABELS)[Language]
  readonly money: (cents: number) => string
}

function findFault(payment: Faulty): string | undefined {
  const { cents, currency, recipient, balance, labels, money } = payment
  if (currency !== 'USD') return labels.wrongCurrency(currency)
  if (cents === undefined) return labels.wrongAmount
  if (!/[\p{L}\p{N}]/u.test(recipient)) return labels.noRecipient
  return cents > balance ? labels.notEnough(money(balance)) : undefined
}

const LABELS = {
  en: {
    balance: 'Balance',
    theirBalance: 'Balance of the requester',
    purpose: 'For',
    transaction: 'Transaction',
    notEnough: (balance: string) => `Not enough money: the balance is ${balance}.`,
    wouldFail: (fault: string) => `${fault} This payment would fail.`,
    noRecipient: 'The recipient is missing.',
    wrongAmount: 'The amount must be positive, with at most two decimals.',
    wrongCurrency: (currency: string) => `The wallet holds US dollars. ${currency} cannot be sent.`,
  },
  ja: {
    balance: '残高',
    theirBalance: '依頼者の残高',
    purpose: '用途',
    transaction: '取引ID',
    notEnough: (balance: string) => `残高が足りません（残高${balance}）。`,
    wouldFail: (fault: string) => `${fault}このままでは送金できません。`,
    noRecipient: '送金先が指定されていません。',
    wrongAmount: '金額は正の数で、小数点以下2桁までにしてください。',
    wrongCurrency: (currency: string) => `残高は米ドルです。${currency}では送金できません。`,
  },
} as const satisfies Record<Language, unknown>

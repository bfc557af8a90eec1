import { randomBytes } from 'node:crypto'

import { Cents } from './money.ts'

export interface Payment {
  /** The idempotency key. A key pays once, however often `pay` is called. */
  readonly key: string
  readonly amount: Cents
  readonly recipient: string
}

export type PaymentResult =
  | {
      readonly state: 'paid'
      readonly transactionId: string
      readonly balance: Cents
      readonly paidAt: string
    }
  | { readonly state: 'insufficient-funds'; readonly balance: Cents }
  /** The key was used for another amount or recipient. */
  | { readonly state: 'key-reused'; readonly balance: Cents }

/** One wallet per user, in US dollars. A new wallet contains 1000. */
export interface Wallets {
  balance(userId: string): Cents | Promise<Cents>
  pay(userId: string, payment: Payment): PaymentResult | Promise<PaymentResult>
}

export const OPENING_BALANCE = Cents.parse(100_000)

/** A payment that was made. */
export interface PaidPayment {
  readonly transactionId: string
  readonly amount: Cents
  readonly recipient: string
  readonly balance: Cents
  readonly paidAt: string
}

export function createTransactionId(): string {
  return `txn_${randomBytes(6).toString('hex')}`
}

/** Returns the result of a payment whose key was used before. `balance` is the present balance. */
export function repeatPayment(
  earlier: PaidPayment,
  payment: Payment,
  balance: Cents,
): PaymentResult {
  const { amount, recipient, ...paid } = earlier
  if (amount !== payment.amount || recipient !== payment.recipient) {
    return { state: 'key-reused', balance }
  }
  return { state: 'paid', ...paid }
}

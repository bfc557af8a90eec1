import type { Cents } from './money.ts'

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
export interface Wallets extends Disposable {
  balance(userId: string): Cents
  pay(userId: string, payment: Payment): PaymentResult
}

import type { Cents } from './money.ts'

export interface Payment {
  /** Names the payment: the same key pays once, however often it is asked. */
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
  /** The key was used before for another amount or recipient. */
  | { readonly state: 'key-reused'; readonly balance: Cents }

/** One wallet per user, in US dollars; a wallet that nobody has used yet holds 1000. */
export interface Wallets extends Disposable {
  balance(userId: string): Cents
  pay(userId: string, payment: Payment): PaymentResult
}

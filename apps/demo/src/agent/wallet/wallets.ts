import { randomBytes } from 'node:crypto'
import { z } from 'zod'

/** An amount of money in whole cents, so that sums are exact. */
export const Cents = z.int().nonnegative().brand<'Cents'>()
export type Cents = z.infer<typeof Cents>

/** Converts an amount to cents. Returns undefined unless it is positive and has at most two decimals. */
export function toCents(amount: number): Cents | undefined {
  // Parses the decimal string, because 19.99 * 100 is not exactly 1999.
  const written = /^(\d+)(?:\.(\d{1,2}))?$/.exec(String(amount))
  if (!written) return undefined
  const [, whole = '0', fraction = ''] = written
  const cents = Cents.safeParse(Number(whole + fraction.padEnd(2, '0')))
  return cents.success && cents.data > 0 ? cents.data : undefined
}

/** Converts cents to the amount that tools and people see. */
export function fromCents(cents: Cents): number {
  return cents / 100
}

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

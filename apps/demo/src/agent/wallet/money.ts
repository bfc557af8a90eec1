import { z } from 'zod'

/** An amount of money as a whole number of cents: payments add up exactly. */
export const Cents = z.int().nonnegative().brand<'Cents'>()
export type Cents = z.infer<typeof Cents>

/** Reads an amount in whole units; `undefined` unless it is positive and has at most two decimals. */
export function toCents(amount: number): Cents | undefined {
  // The shortest decimal that names this number is what was written: 19.99 * 100 is not 1999, but '19.99' is 19.99.
  const written = /^(\d+)(?:\.(\d{1,2}))?$/.exec(String(amount))
  if (!written) return undefined
  const [, whole = '0', fraction = ''] = written
  const cents = Cents.safeParse(Number(whole + fraction.padEnd(2, '0')))
  return cents.success && cents.data > 0 ? cents.data : undefined
}

/** The amount in whole units, as tools and people read it. */
export function fromCents(cents: Cents): number {
  return cents / 100
}

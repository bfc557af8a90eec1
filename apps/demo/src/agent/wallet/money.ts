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

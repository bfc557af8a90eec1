import { z } from 'zod'

import type { CallLabels } from '../i18n/labels.ts'

/** Describes a call of the demo's tools. Returns undefined for other tools. */
export function describeCall(
  toolName: string,
  input: unknown,
  { descriptions, locale }: CallLabels,
): string | undefined {
  if (toolName === 'get_location') return descriptions.location
  const payment = Payment.safeParse(input)
  if (toolName !== 'process_payment' || !payment.success) return undefined
  const { amount, currency, recipient } = payment.data
  return descriptions.payment(formatMoney(amount, currency, locale), recipient)
}

const Payment = z.object({
  amount: z.number(),
  recipient: z.string(),
  currency: z.string().default('USD'),
})

function formatMoney(amount: number, currency: string, locale: string): string {
  try {
    return new Intl.NumberFormat(locale, {
      style: 'currency',
      currency,
      // A person who approves an amount must see every digit.
      maximumFractionDigits: 20,
    }).format(amount)
  } catch {
    // The model may invent a currency code.
    return `${amount} ${currency}`
  }
}

import { z } from 'zod'

import type { Texts } from '../i18n/texts.ts'

/** What a call of this demo's tools will do, in the reader's words; nothing for other calls. */
export function describeCall(toolName: string, input: unknown, texts: Texts): string | undefined {
  const { deeds, locale } = texts.calls
  if (toolName === 'get_location') return deeds.location
  const payment = Payment.safeParse(input)
  if (toolName !== 'process_payment' || !payment.success) return undefined
  const { amount, currency, recipient } = payment.data
  return deeds.payment(formatMoney(amount, currency, locale), recipient)
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
      // What is approved is shown to the last digit.
      maximumFractionDigits: 20,
    }).format(amount)
  } catch {
    // The model may invent a currency; the reader then sees its own word for it.
    return `${amount} ${currency}`
  }
}

import type { DescribedCall } from 'adk-stream-protocol-studio/page'
import { z } from 'zod'

import { formatMoney } from '../format-money.ts'
import { LABELS } from './i18n/use-demo-labels.ts'

/** Describes a call of the demo's tools: what it will do, or what it did. Returns undefined for other tools. */
export function describeCall({
  toolName,
  input,
  phase,
  language,
}: DescribedCall): string | undefined {
  const { descriptions } = LABELS[language]
  if (toolName === 'get_location') {
    if (phase === 'succeeded') return descriptions.located
    return isNotDone(phase) ? descriptions.notLocated : descriptions.location
  }
  if (toolName === 'notes_delete') {
    const notes = Notes.safeParse(input).data?.titles.length
    if (notes === undefined) return undefined
    return phase === 'succeeded' ? descriptions.notesDeleted(notes) : descriptions.notes(notes)
  }
  if (toolName === 'book_trip') {
    const trip = Trip.safeParse(input).data
    if (!trip) return undefined
    const { place, nights } = trip
    const price = formatMoney(trip.price, 'USD', language)
    if (phase === 'succeeded') return descriptions.tripBooked(place, nights, price)
    return descriptions.trip(place, nights, price)
  }
  if (toolName === 'propose_plan') {
    const count = Plan.safeParse(input).data?.steps.length
    return count === undefined ? undefined : descriptions.plan(count)
  }
  const payment = Payment.safeParse(input)
  if (toolName !== 'process_payment' || !payment.success) return undefined
  const { amount, currency, recipient } = payment.data
  const money = formatMoney(amount, currency, language)
  if (phase === 'succeeded') return descriptions.paid(money, recipient)
  if (isNotDone(phase)) return descriptions.notPaid(money, recipient)
  return descriptions.payment(money, recipient)
}

/** Whether a call has ended and had no effect. */
function isNotDone(phase: string): boolean {
  return ['failed', 'denied', 'expired', 'cancelled'].includes(phase)
}

const Notes = z.object({ titles: z.array(z.unknown()) })
const Plan = z.object({ steps: z.array(z.unknown()) })
const Trip = z.object({ place: z.string(), nights: z.number(), price: z.number() })
const Payment = z.object({
  amount: z.number(),
  recipient: z.string(),
  currency: z.string().default('USD'),
})

import { formatMoney } from '../format-money.ts'
import type { PlannedCall } from './schema.ts'
import type { Conversation } from './reading/conversation.ts'
import { normalise } from './reading/language.ts'
import { findKnownPlaces, placeFor } from './reading/places.ts'
import { readOutcome } from './replies/outcomes.ts'
import { phrasesOf } from './replies/phrases.ts'
import type { Language } from '../demo-info.ts'

/** Returns whether the user wants to plan a weekend, which an agent does in steps. */
export function wantsTrip(request: string): boolean {
  return TRIP.test(normalise(request))
}

const TRIP = /\bplan\b.*\b(?:weekend|trip)\b|(?:週末|旅行).*(?:計画|プラン)/i

const STEPS = ['plan', 'book', 'confirm'] as const
type Step = (typeof STEPS)[number]

/** Returns the step that a request to the model belongs to. The instructions of the steps name it. */
export function readTripStep(systemInstruction: string): Step | undefined {
  const name = /You do the step "(\w+)" of a trip/.exec(systemInstruction)?.[1]
  return STEPS.find((step) => step === name)
}

/** Returns what a step of the trip says, or calls. */
export function continueTrip(
  step: Step,
  { request, answered, context }: Conversation,
  language: Language,
): { readonly text: string } | { readonly call: PlannedCall } {
  const texts = TEXTS[language]
  const place = findKnownPlaces(normalise(request))[0]?.name ?? 'Kyoto'
  const name = placeFor(place, language)
  const booking = { place: name, nights: NIGHTS, price: PRICE }
  const price = formatMoney(PRICE, 'USD', language)
  if (step === 'plan') return { text: texts.planned(name, price) }
  // A step receives what the earlier steps said and what their tools returned, as text.
  if (step === 'confirm')
    return {
      text: /"booked"\s*:\s*true/.test(context) ? texts.booked(name) : texts.notBooked(name),
    }
  const result = answered.at(-1)
  if (!result) return { call: { name: 'book_trip', args: booking } }
  const outcome = readOutcome(result.response, true)
  return outcome.state === 'answered'
    ? { text: texts.done(name, price) }
    : { text: phrasesOf(language)[outcome.state](texts.booking(name), outcome.reason) }
}

const NIGHTS = 2
const PRICE = 240

const TEXTS = {
  en: {
    planned: (place: string, price: string) =>
      `A weekend in ${place}: arrive on Friday evening, see the old town and a museum on Saturday, and walk in the gardens on Sunday. Two nights cost ${price}.`,
    booking: (place: string) => `the booking in ${place}`,
    done: (place: string, price: string) => `I booked two nights in ${place} for ${price}.`,
    booked: (place: string) =>
      `Your weekend in ${place} is planned and booked. This demo has no real hotel.`,
    notBooked: (place: string) => `Your weekend in ${place} is planned, and nothing is booked.`,
  },
  ja: {
    planned: (place: string, price: string) =>
      `${place}の週末：金曜の夜に到着し、土曜は旧市街と美術館、日曜は庭園を散策します。2泊で${price}です。`,
    booking: (place: string) => `${place}の予約`,
    done: (place: string, price: string) => `${place}の2泊を${price}で予約しました。`,
    booked: (place: string) =>
      `${place}の週末の計画と予約が済みました。このデモに実際のホテルはありません。`,
    notBooked: (place: string) => `${place}の週末を計画しました。予約はしていません。`,
  },
} as const satisfies Record<Language, unknown>

import type { AnsweredCall, Conversation } from '../reading/conversation.ts'
import { formatMoney } from '../../format-money.ts'
import { type Outcome, readOutcome } from './outcomes.ts'
import { type NamedPayment, type Phrases, phrasesOf } from './phrases.ts'
import { placeFor } from '../reading/places.ts'
import { clip, renderValue } from './render.ts'
import { isRecord } from '../schema.ts'
import type { Language } from '../../demo-info.ts'

export interface Style {
  readonly language: Language
  /** Whether the reply is spoken: shorter, without Markdown. */
  readonly spoken: boolean
}

/** Reports the latest results in one reply. */
export function commentOn(
  { answered, waiting }: Pick<Conversation, 'answered' | 'waiting'>,
  style: Style,
): string {
  const phrases = phrasesOf(style.language)
  const results = answered.map((call) => ({ call, outcome: outcomeOf(call) }))
  const payments = results.flatMap(({ call, outcome }) => successfulPayment(call, outcome, style))
  const sentences = [
    ...(payments.length === 0 ? [] : [phrases.sent(payments)]),
    ...results.flatMap(({ call, outcome }) => describe(call, outcome, style)),
    // Several results may have the same note.
    ...new Set(results.flatMap(({ call, outcome }) => noteOf(call, outcome, style))),
    ...balanceOf(payments, style),
    ...(waiting.length === 0
      ? []
      : [
          phrases.stillWaiting(
            waiting.map(({ name, args }) => describeCall(name, args ?? {}, style)),
          ),
        ]),
  ]
  return phrases.join(sentences)
}

/** Returns whether all latest calls succeeded, so that the next step can start. */
export function allSucceeded(answered: readonly AnsweredCall[]): boolean {
  return answered.every((call) => {
    const outcome = outcomeOf(call)
    return call.name === 'process_payment' ? saysMade(outcome) : outcome.state === 'answered'
  })
}

/** Returns the formatted balance after the last payment. */
export function lastBalance(history: readonly AnsweredCall[], style: Style): string | undefined {
  const payments = history.flatMap((call) => successfulPayment(call, outcomeOf(call), style))
  const last = payments.findLast(({ balance }) => balance !== undefined)
  return last?.balance === undefined
    ? undefined
    : formatMoney(last.balance, last.currency, style.language)
}

const KNOWN_TOOLS = new Set([
  'get_weather',
  'process_payment',
  'get_location',
  'change_bgm',
  'adk_request_input',
  'propose_plan',
  'accountant',
  'get_calendar',
  'notebook',
])

function outcomeOf({ name, response, willContinue }: AnsweredCall): Outcome {
  return willContinue ? { state: 'pending' } : readOutcome(response, KNOWN_TOOLS.has(name))
}

interface SuccessfulPayment extends NamedPayment {
  readonly transaction?: string
  readonly currency: string
  readonly balance?: number
}

/** A payment is completed only if its result says so. */
function successfulPayment(
  call: AnsweredCall,
  outcome: Outcome,
  { language }: Style,
): SuccessfulPayment[] {
  if (call.name !== 'process_payment' || !saysMade(outcome)) return []
  const { value } = outcome
  const transaction = value['transaction_id']
  // The values that ran. The approver may have edited the requested ones.
  const ran = { ...call.args, ...editsOf(value), ...value }
  const currency = textOr(ran['currency'], 'USD')
  const balance = value['wallet_balance']
  return [
    {
      money:
        typeof ran['amount'] === 'number' ? formatMoney(ran['amount'], currency, language) : '?',
      recipient: textOr(ran['recipient'], '?'),
      currency,
      ...(typeof transaction === 'string' && { transaction }),
      ...(typeof balance === 'number' && { balance }),
    },
  ]
}

const PAID = new Set([
  'paid',
  'success',
  'succeeded',
  'completed',
  'complete',
  'ok',
  'done',
  'sent',
])

function saysMade(outcome: Outcome): outcome is Extract<Outcome, { state: 'answered' }> {
  if (outcome.state !== 'answered') return false
  const { success, status, transaction_id: transaction } = outcome.value
  const isPaid = typeof status === 'string' && PAID.has(status.toLowerCase())
  return success === true || typeof transaction === 'string' || isPaid
}

function balanceOf(payments: readonly SuccessfulPayment[], { language }: Style): string[] {
  const known = payments.flatMap(({ balance, currency }) =>
    balance === undefined ? [] : [{ balance, currency }],
  )
  // Results arrive in any order. The lowest balance is that after the last payment.
  const [lowest] = known.toSorted((one, other) => one.balance - other.balance)
  return lowest === undefined
    ? []
    : [phrasesOf(language).balance(formatMoney(lowest.balance, lowest.currency, language))]
}

function describe(call: AnsweredCall, outcome: Outcome, style: Style): string[] {
  const phrases = phrasesOf(style.language)
  if (outcome.state !== 'answered') {
    return [phrases[outcome.state](describeCall(call.name, call.args, style), outcome.reason)]
  }
  const { value } = outcome
  const main =
    successfulPayment(call, outcome, style).length > 0 ? [] : [answerOf(call, value, style)]
  return [...main, ...editSentence(call, value, phrases)]
}

function noteOf({ name }: AnsweredCall, outcome: Outcome, { language }: Style): string[] {
  if (outcome.state !== 'answered' || !KNOWN_TOOLS.has(name)) return []
  const { note } = outcome.value
  return typeof note === 'string' ? [phrasesOf(language).note(clip(note, 200))] : []
}

function answerOf(
  { name, args }: AnsweredCall,
  value: Readonly<Record<string, unknown>>,
  style: Style,
): string {
  const phrases = phrasesOf(style.language)
  const known = KNOWN_ANSWERS.get(name)?.({ args, value, style, phrases })
  return known ?? phrases.answered(name, renderValue(plainAnswer(value)))
}

/** Unwraps `{ result: 'text' }`. */
function plainAnswer(value: Readonly<Record<string, unknown>>): unknown {
  const keys = Object.keys(value)
  return keys.length === 1 && (keys[0] === 'result' || keys[0] === 'output')
    ? value[keys[0]]
    : value
}

interface KnownAnswer {
  readonly args: Readonly<Record<string, unknown>>
  readonly value: Readonly<Record<string, unknown>>
  readonly style: Style
  readonly phrases: Phrases
}

/** Returns a sentence for a result of the demo's tools, or undefined for any other result. */
const KNOWN_ANSWERS: ReadonlyMap<string, (answer: KnownAnswer) => string | undefined> = new Map([
  ['get_weather', weatherAnswer],
  ['get_location', locationAnswer],
  ['change_bgm', trackAnswer],
  ['process_payment', unconfirmedPayment],
  ['adk_request_input', tableAnswer],
  ['propose_plan', planAnswer],
  ['accountant', reportedAnswer],
  ['get_calendar', calendarAnswer],
  ['notebook', reportedAnswer],
])

function weatherAnswer({ args, value, style, phrases }: KnownAnswer): string | undefined {
  const { temperature, condition, humidity, feels_like: feelsLike, wind_speed: wind } = value
  if (typeof temperature !== 'number') return undefined
  const place = textOr(value['location'], textOr(args['location'], textOr(value['city'], '?')))
  const report = {
    place: placeFor(place, style.language),
    temperature,
    ...(typeof condition === 'string' && condition !== 'Unknown' && { condition }),
    ...(typeof humidity === 'number' && { humidity }),
    ...(typeof feelsLike === 'number' && { feelsLike }),
    ...(typeof wind === 'number' && { wind }),
  }
  return phrases.weather(report, style.spoken)
}

function locationAnswer({ value, phrases }: KnownAnswer): string | undefined {
  const { latitude, longitude, accuracy } = value
  if (typeof latitude !== 'number' || typeof longitude !== 'number') return undefined
  return phrases.position({
    latitude,
    longitude,
    ...(typeof accuracy === 'number' && { accuracy }),
  })
}

function trackAnswer({ args, value, phrases }: KnownAnswer): string | undefined {
  const track = value['track'] ?? (value['success'] === true ? args['track'] : undefined)
  return typeof track === 'number' || typeof track === 'string'
    ? phrases.trackPlays(String(track))
    : undefined
}

function tableAnswer({ value, phrases }: KnownAnswer): string | undefined {
  const { guests, date, seating, wishes } = value
  if (typeof guests !== 'number' || typeof date !== 'string') return undefined
  const details = [seating, wishes].filter((text) => typeof text === 'string' && text !== '')
  return phrases.tableNoted(guests, date, details.map(String))
}

function calendarAnswer({ value, phrases }: KnownAnswer): string | undefined {
  const { owner, events } = value
  if (typeof owner !== 'string' || !Array.isArray(events)) return undefined
  const listed = events.filter(isRecord).map(({ time, title }) => ({
    time: textOr(time, '?'),
    title: textOr(title, '?'),
  }))
  return phrases.calendar(clip(owner, 80), listed)
}

function planAnswer({ value, phrases }: KnownAnswer): string | undefined {
  return value['status'] === 'approved' ? phrases.planApproved : undefined
}

/** An agent that is used as a tool has reported in a sentence. */
function reportedAnswer({ value }: KnownAnswer): string | undefined {
  const { result } = value
  return typeof result === 'string' ? result : undefined
}

/** Used only if the result does not confirm the payment. */
function unconfirmedPayment({ args, value, style, phrases }: KnownAnswer): string {
  const rendering = renderValue(value)
  return phrases.unknown(
    describeCall('process_payment', args, style),
    rendering === '' ? undefined : rendering,
  )
}

/** Returns what a call does, as a part of a sentence. */
function describeCall(
  name: string,
  args: Readonly<Record<string, unknown>>,
  { language }: Style,
): string {
  const phrases = phrasesOf(language)
  switch (name) {
    case 'process_payment':
      if (typeof args['amount'] !== 'number' || typeof args['recipient'] !== 'string') break
      return phrases.payment({
        money: formatMoney(args['amount'], textOr(args['currency'], 'USD'), language),
        recipient: args['recipient'],
      })
    case 'get_weather':
      if (typeof args['location'] !== 'string') break
      return phrases.weatherLookup(placeFor(args['location'], language))
    case 'get_location':
      return phrases.locating
    case 'adk_request_input':
      return phrases.asking
    case 'propose_plan':
      return phrases.plan
    case 'accountant':
      return phrases.delegation
    case 'notebook':
      return phrases.notebook
    case 'get_calendar':
      return phrases.readingCalendar
    case 'change_bgm':
      if (typeof args['track'] !== 'number') break
      return phrases.trackChange(String(args['track']))
  }
  return phrases.otherCall(name)
}

/** Returns the arguments that an approver edited, if the result lists them. */
function editsOf(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { edited } = value
  if (!isRecord(edited)) return {}
  return Object.fromEntries(
    Object.entries(edited).map(([key, change]) => [key, isRecord(change) ? change['to'] : change]),
  )
}

function editSentence(
  { args }: AnsweredCall,
  value: Readonly<Record<string, unknown>>,
  phrases: Phrases,
): string[] {
  const { edited } = value
  if (edited === undefined || edited === null || edited === false) return []
  const listed = Object.entries(editsOf(value))
  // Without a list, compares the values that the result repeats.
  const changed =
    listed.length > 0
      ? listed
      : Object.entries(value).filter(([key, now]) => Object.hasOwn(args, key) && args[key] !== now)
  const changes = changed.map(([key, now]) => {
    const before =
      Object.hasOwn(args, key) && args[key] !== now ? `${renderValue(args[key])} → ` : ''
    return `${key} ${before}${renderValue(now)}`
  })
  return [phrases.edited(typeof edited === 'string' ? [clip(edited, 200)] : changes)]
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? clip(value, 80) : otherwise
}

import { hasHiragana, splitSentences } from './language.ts'
import { findMoney } from './money.ts'
import { readMusicIntent, type MusicIntent } from './music.ts'
import { stripHonorific, type PaymentDraft } from './payment-draft.ts'
import { isComplete, isNotAnOrder, readPayments, wantsPayment } from './payments.ts'
import { findKnownPlaces } from './places.ts'
import { readWeatherPlaces, wantsWeather } from './weather.ts'

/** A request that needs a tool. */
export type Intent =
  | { readonly kind: 'payment'; readonly draft: PaymentDraft }
  | { readonly kind: 'weather'; readonly place?: string }
  | { readonly kind: 'location' }
  | { readonly kind: 'music'; readonly intent: MusicIntent }

/** Reads the intents of a text in steps. The intents of one step can run in parallel. */
export function readIntents(text: string): Intent[][] {
  const scope = { pays: wantsPayment(text), weather: wantsWeather(text) }
  const steps: Intent[][] = []
  let step: Intent[] = []
  for (const part of splitParts(text)) {
    if (part.opensStep && step.length > 0) {
      steps.push(step)
      step = []
    }
    step.push(...partIntents(part.text, scope))
  }
  return joinParts([...steps, step])
}

/** Reads a text as a reply with the missing name, amount or place of an earlier intent. */
export function completeIntents(
  earlier: readonly Intent[][],
  text: string,
): Intent[][] | undefined {
  if (text.length > LONGEST_ANSWER) return undefined
  const intents = earlier.flat()
  const completed = intents.map((intent) => completeIntent(intent, text))
  const anyCompleted = completed.some((intent, index) => intent !== intents[index])
  if (anyCompleted) return [completed]
  const places = intents.some(({ kind }) => kind === 'weather') ? onlyPlaces(text) : []
  return places.length === 0 ? undefined : [places.map((place) => ({ kind: 'weather', place }))]
}

const LONGEST_ANSWER = 80
// Words around places in "and in Paris?", 「大阪は?」.
const AROUND_PLACES =
  /^(?:and|what about|how about|in|for|or|please|では|じゃあ|なら|です|は|も|と|の|[\s,、。?!])*$/i

function onlyPlaces(text: string): string[] {
  const places = findKnownPlaces(text)
  const rest = places.reduceRight(
    (left, { start, end }) => left.slice(0, start) + left.slice(end),
    text,
  )
  return AROUND_PLACES.test(rest) ? places.map(({ name }) => name) : []
}

// Words between two intents that order them.
const SEQUENCE =
  /\b(?:and then|then|after that|afterwards|followed by)\b|その後で?|そのあとで?|それから|次に|続いて|終わったら|完了したら|したら|してから|した後に?/gi

function splitParts(text: string): { readonly text: string; readonly opensStep: boolean }[] {
  return splitSentences(text).flatMap((sentence) =>
    sentence.split(SEQUENCE).map((part, index) => ({ text: part, opensStep: index > 0 })),
  )
}

interface Scope {
  readonly pays: boolean
  readonly weather: boolean
}

const LOCATION =
  /\bwhere (?:am i|i am)\b|\b(?:my|current) (?:location|position|whereabouts)\b|\blocate me\b|現在地|現在位置|(?:私|僕|今)の(?:位置|居場所|場所)|位置情報|ここはどこ|今どこ/i

function partIntents(part: string, scope: Scope): Intent[] {
  const music = readMusicIntent(part)
  const location = LOCATION.test(part)
  const { pays, weather } = subjectsOf(part, scope, music !== undefined || location)
  const drafts = pays && !isNotAnOrder(part) ? readPayments(part) : []
  return [
    ...(weather ? weatherIntents(part, drafts, location) : []),
    ...drafts.map((draft): Intent => ({ kind: 'payment', draft })),
    ...(location ? [{ kind: 'location' } as const] : []),
    ...(music === undefined ? [] : [{ kind: 'music', intent: music } as const]),
  ]
}

/** 「Aliceに30ドル、その後Bobに40ドル送金して」: a part without a verb uses that of the others. */
function subjectsOf(part: string, scope: Scope, hasOther: boolean): Scope {
  const own = { pays: wantsPayment(part), weather: wantsWeather(part) }
  if (own.pays || own.weather || hasOther) return own
  const pays = scope.pays && findMoney(part).length > 0
  return { pays, weather: !pays && scope.weather && findKnownPlaces(part).length > 0 }
}

function weatherIntents(
  part: string,
  drafts: readonly PaymentDraft[],
  location: boolean,
): Intent[] {
  const recipients = new Set(drafts.map(({ recipient }) => recipient))
  const places = readWeatherPlaces(part).filter((place) => !recipients.has(place))
  if (places.length > 0) return places.map((place) => ({ kind: 'weather', place }))
  // "the weather at my location" needs the location first.
  return location ? [] : [{ kind: 'weather' }]
}

/** Joins two parts of a text that are one payment, and leaves out incomplete intents that another part completes. */
function joinParts(steps: readonly (readonly Intent[])[]): Intent[][] {
  const intents = steps.flat()
  const hasPlace = intents.some((intent) => intent.kind === 'weather' && intent.place !== undefined)
  const incomplete = intents.flatMap((intent) =>
    intent.kind === 'payment' && !isComplete(intent.draft) ? [intent.draft] : [],
  )
  const hasPayment = intents.some((intent) => intent.kind === 'payment' && isComplete(intent.draft))
  const merged = incomplete.reduce((whole, half) => ({ ...whole, ...half }), {})
  const isRedundant = (intent: Intent): boolean =>
    (intent.kind === 'weather' && intent.place === undefined && hasPlace) ||
    (intent.kind === 'payment' && hasPayment && Object.keys(intent.draft).length === 0)
  const kept = steps.map((step) => step.filter((intent) => !isRedundant(intent)))
  // "Pay Bob. It is $50." is one payment.
  const isOnePayment = incomplete.length === 2 && !hasPayment && isComplete(merged)
  const joined = isOnePayment ? withPayment(kept, merged) : kept
  return joined.filter((step) => step.length > 0)
}

/** Replaces the payments of all steps by one at the end. */
function withPayment(steps: readonly (readonly Intent[])[], draft: PaymentDraft): Intent[][] {
  const others = steps.map((step) => step.filter(({ kind }) => kind !== 'payment'))
  return [...others, [{ kind: 'payment', draft }]]
}

function completeIntent(intent: Intent, text: string): Intent {
  if (intent.kind === 'music') return completeMusic(intent, text)
  if (intent.kind !== 'payment' || isComplete(intent.draft)) return intent
  const draft = {
    ...intent.draft,
    ...missingPrice(intent.draft, text),
    ...missingName(intent.draft, text),
  }
  return Object.keys(draft).length === Object.keys(intent.draft).length
    ? intent
    : { ...intent, draft }
}

/** "2" is a reply to "Which track would you like?" */
function completeMusic(intent: Extract<Intent, { kind: 'music' }>, text: string): Intent {
  const isAnswer = intent.intent.want !== 'track' && /^\d{1,6}$/.test(text)
  return isAnswer ? { kind: 'music', intent: { want: 'track', track: Number(text) } } : intent
}

function missingPrice({ amount }: PaymentDraft, text: string): PaymentDraft {
  const [money] = amount === undefined ? findMoney(text) : []
  return money === undefined ? {} : { amount: money.amount, currency: money.currency ?? 'USD' }
}

function missingName({ recipient }: PaymentDraft, text: string): PaymentDraft {
  const name = recipient === undefined ? bareName(text) : undefined
  return name === undefined ? {} : { recipient: name }
}

// Little more than a name: "Alice", "to Alice please", 「花子さんです」「花子さんに」.
const ENGLISH_ANSWER =
  /^(?:to |it's |for )?(\p{Lu}[\p{L}'-]*(?: \p{Lu}[\p{L}'-]*){0,2})(?:,? please)?$/u
const JAPANESE_ANSWER =
  /^([^\s、。\d]{1,20}?(?:さん|様|くん|ちゃん)|[\p{Script=Han}\p{Script=Katakana}ー\p{Script=Latin}]{1,20})(?:に|へ|です|にお願いします|でお願いします)*$/u

function bareName(text: string): string | undefined {
  const sentence = splitSentences(text)[0] ?? ''
  const answer =
    hasHiragana(sentence) || !/[A-Za-z]/.test(sentence) ? JAPANESE_ANSWER : ENGLISH_ANSWER
  const found = answer.exec(sentence)?.[1]
  return found === undefined ? undefined : stripHonorific(found)
}

import type { FunctionDeclaration } from 'gemini-emulator'
import type { AnsweredCall } from './reading/conversation.ts'
import { normalise } from './reading/language.ts'
import { formatMoney } from '../format-money.ts'
import type { MusicIntent } from './reading/music.ts'
import { readNamedCalls } from './reading/named-calls.ts'
import { readOutcome } from './replies/outcomes.ts'
import type { PaymentDraft } from './reading/payment-draft.ts'
import { type Phrases, phrasesOf } from './replies/phrases.ts'
import { completeIntents, readIntents, type Intent } from './reading/intents.ts'
import {
  createTableQuestion,
  readDelegation,
  wantsCalendar,
  wantsTable,
} from './reading/questions.ts'
import { fitArguments, type Shape, shapeOf, type PlannedCall } from './schema.ts'
import { isAboutNotes } from './notes.ts'
import { wantsTrip } from './trip.ts'
import { isSmallTalk } from './reading/small-talk.ts'
import type { Language } from '../demo-info.ts'

/** The plan for a request: a question to the user, or calls in steps. Each step follows the results of the previous one. */
export type Plan =
  | { readonly kind: 'ask'; readonly question: string }
  | {
      readonly kind: 'call'
      readonly remarks: readonly string[]
      readonly steps: readonly (readonly PlannedCall[])[]
    }

/** The context of a request. */
export interface PlanContext {
  readonly functions: readonly FunctionDeclaration[]
  readonly earlierRequests: readonly string[]
  readonly history: readonly AnsweredCall[]
  readonly language: Language
  /** Whether this is a live session, in which steps cannot wait for an approval. */
  readonly spoken?: boolean
}

/** Plans the calls for a request. Returns undefined if it needs none. */
export function planRequest(request: string, context: PlanContext): Plan | undefined {
  const named = planNamedCalls(request, context) ?? planQuestion(request, context)
  if (named !== undefined) return named
  const steps = intentsInContext(normalise(request), context.earlierRequests)
  const planned = steps.map((step) => step.map((intent) => planIntent(intent, context)))
  if (planned.flat().length === 0) return undefined
  const question = planned.flat().find((item) => item.kind === 'ask')
  if (question !== undefined) return question
  const calls = planned.map((step) =>
    step.flatMap((item) => (item.kind === 'planned-call' ? [item.call] : [])),
  )
  return {
    kind: 'call',
    remarks: [
      ...new Set(planned.flat().flatMap((item) => (item.kind === 'remark' ? [item.remark] : []))),
    ],
    steps: [...proposalOf(request, calls.flat(), context), ...calls].filter(
      (step) => step.length > 0,
    ),
  }
}

/** Returns the call that proposes several payments first, if the user asks for a plan. A spoken conversation asks for each. */
function proposalOf(
  request: string,
  calls: readonly PlannedCall[],
  context: PlanContext,
): PlannedCall[][] {
  const isPlan = calls.length > 1 && calls.every(({ name }) => name === 'process_payment')
  if (!isPlan || !WANTS_PLAN.test(request) || context.spoken || !offers(context, 'propose_plan'))
    return []
  const steps = calls.map(({ name: tool, args }) => ({ tool, args }))
  return [[{ name: 'propose_plan', args: { steps } }]]
}

const WANTS_PLAN = /\b(?:make|propose) (?:me )?a plan\b|計画を(?:立て|作っ)/i

/** Plans a request that needs an answer in a form or a sign-in, or that another agent carries out. */
function planQuestion(request: string, context: PlanContext): Plan | undefined {
  const task = offers(context, 'accountant') ? readDelegation(request) : undefined
  if (task !== undefined) return toPlan({ name: 'accountant', args: { request: task } })
  if (wantsTrip(request) && offers(context, 'transfer_to_agent'))
    return context.spoken
      ? { kind: 'ask', question: phrasesOf(context.language).tripNeedsChat }
      : toPlan({ name: 'transfer_to_agent', args: { agentName: 'weekend_trip' } })
  if (isAboutNotes(request) && offers(context, 'notebook'))
    return toPlan({ name: 'notebook', args: { request } })
  if (wantsCalendar(request) && offers(context, 'get_calendar'))
    return toPlan({ name: 'get_calendar', args: {} })
  return wantsTable(request) && offers(context, 'adk_request_input')
    ? toPlan({ name: 'adk_request_input', args: createTableQuestion(request, context.language) })
    : undefined
}

function toPlan(only: PlannedCall): Plan {
  return { kind: 'call', remarks: [], steps: [[only]] }
}

function planNamedCalls(request: string, { functions, language }: PlanContext): Plan | undefined {
  const named = readNamedCalls(request, functions)
  const given = named.filter(({ args }) => args !== undefined)
  const [first] = named
  if (first === undefined) return undefined
  const phrases = phrasesOf(language)
  if (given.length === 0) {
    // A name that is a plain word ("search") is not a call. Any other name is.
    if (!/[_A-Z]/.test(first.declaration.name) || !request.includes(first.declaration.name))
      return undefined
    const keys = [...shapeOf(first.declaration).properties.keys()]
    return { kind: 'ask', question: phrases.needsArguments(first.declaration.name, keys) }
  }
  const fitted = given.map(({ declaration, args }) => ({
    name: declaration.name,
    ...fitArguments(args ?? {}, shapeOf(declaration)),
  }))
  const unfit = fitted.find(({ wrong }) => wrong.length > 0)
  if (unfit !== undefined)
    return { kind: 'ask', question: phrases.doesNotFit(unfit.name, unfit.wrong) }
  return { kind: 'call', remarks: [], steps: [fitted.map(({ name, args }) => ({ name, args }))] }
}

const MAX_EARLIER = 6
const AGAIN =
  /^(?:please )?(?:try (?:it |that )?again|once more|do it again|retry|repeat that)(?:,? please)?[.!]*$|^(?:もう一度|再度|もう一回)/i

/** Reads the intents of the request. It may complete an earlier one. */
function intentsInContext(request: string, earlierRequests: readonly string[]): Intent[][] {
  let open: Intent[][] = []
  for (const earlier of earlierRequests.slice(-MAX_EARLIER))
    open = nextIntents(open, normalise(earlier)) ?? open
  return nextIntents(open, request) ?? []
}

function nextIntents(open: Intent[][], text: string): Intent[][] | undefined {
  if (AGAIN.test(text)) return open
  const own = readIntents(text)
  if (own.length > 0) return own
  return isSmallTalk(text) ? undefined : completeIntents(open, text)
}

type Item =
  | { readonly kind: 'ask'; readonly question: string }
  | { readonly kind: 'remark'; readonly remark: string }
  | { readonly kind: 'planned-call'; readonly call: PlannedCall }

function planIntent(intent: Intent, context: PlanContext): Item {
  const phrases = phrasesOf(context.language)
  switch (intent.kind) {
    case 'weather':
      if (intent.place === undefined && offers(context, 'get_weather')) return ask(phrases.askPlace)
      return call('get_weather', { location: intent.place }, context)
    case 'location':
      return call('get_location', {}, context)
    case 'payment':
      return planPayment(intent.draft, context)
    case 'music':
      return planMusic(intent.intent, context)
  }
}

function planPayment(draft: PaymentDraft, context: PlanContext): Item {
  const question = questionAbout(draft, context.language)
  if (question !== undefined && offers(context, 'process_payment')) return ask(question)
  return call('process_payment', { ...draft }, context)
}

function questionAbout(
  { amount, currency, recipient }: PaymentDraft,
  language: Language,
): string | undefined {
  const phrases = phrasesOf(language)
  if (amount === undefined)
    return recipient === undefined ? phrases.askPayment : phrases.askAmount(recipient)
  return recipient === undefined
    ? phrases.askRecipient(formatMoney(amount, currency ?? 'USD', language))
    : undefined
}

function planMusic(intent: MusicIntent, context: PlanContext): Item {
  const phrases = phrasesOf(context.language)
  const declaration = find(context, 'change_bgm')
  if (declaration === undefined) return { kind: 'remark', remark: phrases.noTool('change_bgm') }
  switch (intent.want) {
    case 'track':
      return call('change_bgm', { track: intent.track }, context)
    case 'next':
      return call('change_bgm', { track: lastTrack(context.history) === 2 ? 1 : 2 }, context)
    case 'stop':
      return allowsZero(shapeOf(declaration).properties.get('track'))
        ? call('change_bgm', { track: 0 }, context)
        : ask(phrases.cannotStopMusic)
    case 'some':
      return ask(phrases.askTrack)
  }
}

function lastTrack(history: readonly AnsweredCall[]): unknown {
  const changes = history.filter(
    ({ name, response }) =>
      name === 'change_bgm' && readOutcome(response, true).state === 'answered',
  )
  return changes.at(-1)?.args['track']
}

/** The tool supports silence if its schema allows 0. */
function allowsZero(track: Shape | undefined): boolean {
  return track?.minimum === 0 || (track?.options?.includes(0) ?? false)
}

/** Returns a call of a demo tool if it is declared and accepts the arguments, otherwise the reason. */
function call(name: string, wanted: Readonly<Record<string, unknown>>, context: PlanContext): Item {
  const phrases: Phrases = phrasesOf(context.language)
  const declaration = find(context, name)
  if (declaration === undefined) return { kind: 'remark', remark: phrases.noTool(name) }
  const shape = shapeOf(declaration)
  const given = Object.fromEntries(
    Object.entries(wanted).filter(([, value]) => value !== undefined),
  )
  // The tool's default, for declarations that require the argument.
  const args = shape.required.includes('description') ? { description: '', ...given } : given
  const { args: fitted, wrong } = fitArguments(args, shape)
  const lost = ESSENTIAL.filter((key) => Object.hasOwn(args, key) && !Object.hasOwn(fitted, key))
  const unfit = [...new Set([...wrong, ...lost])]
  if (unfit.length > 0) return { kind: 'remark', remark: phrases.doesNotFit(name, unfit) }
  return { kind: 'planned-call', call: { name, args: fitted } }
}

/** Arguments that a call must not lose. */
const ESSENTIAL = ['amount', 'recipient', 'location', 'track']

function ask(question: string): Item {
  return { kind: 'ask', question }
}

function find({ functions }: PlanContext, name: string): FunctionDeclaration | undefined {
  return functions.find((declaration) => declaration.name === name)
}

function offers(context: PlanContext, name: string): boolean {
  return find(context, name) !== undefined
}

import { english } from './phrases-english.ts'
import { japanese } from './phrases-japanese.ts'
import type { Language } from '../../demo-info.ts'

/** A payment with a formatted amount. */
export interface NamedPayment {
  readonly money: string
  readonly recipient: string
}

interface WeatherReport {
  readonly place: string
  readonly temperature: number
  readonly condition?: string
  readonly humidity?: number
  readonly feelsLike?: number
  readonly wind?: number
}

interface CalendarEvent {
  readonly time: string
  readonly title: string
}

interface Position {
  readonly latitude: number
  readonly longitude: number
  readonly accuracy?: number
}

/** All texts of the model. There is one object for each language. Spoken texts are shorter and have no Markdown. */
export interface Phrases {
  readonly join: (sentences: readonly string[]) => string
  readonly list: (items: readonly string[]) => string

  readonly askRecipient: (money: string) => string
  readonly askAmount: (recipient: string) => string
  readonly askPayment: string
  readonly askPlace: string
  readonly askTrack: string
  readonly tripNeedsChat: string
  readonly cannotStopMusic: string
  readonly doesNotFit: (name: string, keys: readonly string[]) => string
  readonly needsArguments: (name: string, keys: readonly string[]) => string
  readonly noTool: (name: string) => string

  /** Names of calls, for sentences about their outcome. */
  readonly payment: (payment: NamedPayment) => string
  /** Says in a voice conversation what the user is asked to approve. */
  readonly needsApproval: (payments: readonly string[]) => string
  readonly weatherLookup: (place: string) => string
  readonly locating: string
  readonly asking: string
  readonly delegation: string
  readonly plan: string
  readonly planApproved: string
  readonly readingCalendar: string
  readonly notebook: string
  readonly trackChange: (track: string) => string
  readonly otherCall: (name: string) => string

  readonly failed: (action: string, reason: string | undefined) => string
  readonly denied: (action: string, reason: string | undefined) => string
  readonly pending: (action: string, reason: string | undefined) => string
  readonly expired: (action: string, reason: string | undefined) => string
  readonly cancelled: (action: string, reason: string | undefined) => string
  readonly unknown: (action: string, reason: string | undefined) => string
  readonly stillWaiting: (calls: readonly string[]) => string
  readonly notGoingOn: string

  readonly sent: (payments: readonly (NamedPayment & { readonly transaction?: string })[]) => string
  readonly balance: (money: string) => string
  readonly weather: (report: WeatherReport, spoken: boolean) => string
  readonly position: (position: Position) => string
  readonly calendar: (owner: string, events: readonly CalendarEvent[]) => string
  readonly tableNoted: (guests: number, date: string, details: readonly string[]) => string
  readonly trackPlays: (track: string) => string
  readonly answered: (name: string, rendering: string) => string
  readonly edited: (changes: readonly string[]) => string
  readonly note: (note: string) => string

  readonly greeting: (name: string | undefined) => string
  readonly leaveIt: string
  readonly thanks: string
  readonly goodbye: string
  readonly identity: string
  readonly help: (spoken: boolean, tools: readonly string[]) => string
  readonly niceToMeet: (name: string) => string
  readonly yourName: (name: string | undefined) => string
  readonly knownBalance: (money: string | undefined) => string
  readonly markdown: string
  readonly markdownSpoken: string
  readonly thought: (gist: string) => string
  readonly reasoned: (gist: string) => string
  readonly received: (files: readonly string[]) => string
  /** The main colour of an image. */
  readonly mostly: (colour: string) => string
  readonly picture: (subject: string) => string
  readonly echo: (gist: string, example: string) => string
  readonly nothingSaid: string
  /** Example requests, by tool. */
  readonly examples: readonly { readonly tool: string; readonly text: string }[]
}

/** The phrases of a language. */
export function phrasesOf(language: Language): Phrases {
  return language === 'ja' ? japanese : english
}

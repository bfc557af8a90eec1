import type { ShellLabels } from './shell/shell-labels.ts'

export type Language = 'en' | 'ja'

/** All labels of the page in one language. */
export interface Labels {
  readonly title: string
  readonly tagline: string
  readonly intro: string
  readonly newChat: string
  readonly skipToInput: string
  readonly placeholder: string
  readonly reload: string
  readonly latest: string
  readonly loading: string
  readonly unreadableTitle: string
  readonly unreadableText: string
  readonly missingTitle: string
  readonly missingText: string
  readonly suggestionsLabel: string
  readonly calls: CallLabels
  /** The card of the weather. Temperatures are in degrees Celsius. */
  readonly weather: {
    readonly degrees: (value: number) => string
    readonly feelsLike: (value: number) => string
    /** In percent. */
    readonly humidity: (value: number) => string
    /** In metres per second. */
    readonly wind: (value: number) => string
    /** The values are not measured. */
    readonly sample: string
    /** The names of conditions, in lower case. */
    readonly conditions: Readonly<Record<string, string>>
  }
  readonly shell: ShellLabels
  readonly music: {
    readonly track: (track: number) => string
    readonly mute: (track: number) => string
  }
}

/** Labels of the demo's tools. */
export interface CallLabels {
  /** The language in which amounts of money are written. */
  readonly language: 'en' | 'ja'
  /** What a call will do, and what it did. */
  readonly descriptions: {
    readonly payment: (money: string, recipient: string) => string
    readonly paid: (money: string, recipient: string) => string
    readonly notPaid: (money: string, recipient: string) => string
    readonly location: string
    readonly located: string
    readonly notLocated: string
    readonly notes: (count: number) => string
    readonly notesDeleted: (count: number) => string
    readonly trip: (place: string, nights: number, price: string) => string
    readonly tripBooked: (place: string, nights: number, price: string) => string
  }
  /** Display names of tools and agents. */
  readonly names: Readonly<Record<string, string>>
  /** Display names of arguments. */
  readonly argumentNames: Readonly<Record<string, string>>
}

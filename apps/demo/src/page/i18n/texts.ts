import type { ShellTexts } from './shell/shell-texts.ts'

export type Language = 'en' | 'ja'

/** Everything the page says, in one language. */
export interface Texts {
  readonly title: string
  readonly tagline: string
  readonly intro: string
  readonly newChat: string
  readonly message: string
  readonly placeholder: string
  readonly hint: string
  readonly send: string
  readonly stop: string
  readonly reload: string
  readonly latest: string
  readonly loading: string
  readonly unreadableTitle: string
  readonly unreadableText: string
  readonly missingTitle: string
  readonly missingText: string
  readonly suggestionsLabel: string
  readonly calls: CallTexts
  readonly shell: ShellTexts
  readonly music: {
    readonly track: (track: number) => string
    readonly mute: (track: number) => string
  }
}

/** What the calls of the demo's tools do. */
interface CallTexts {
  /** For money. */
  readonly locale: string
  readonly deeds: {
    readonly payment: (money: string, recipient: string) => string
    readonly location: string
  }
  /** Of arguments that the reader may not know by the name the tool gives them. */
  readonly names: Readonly<Record<string, string>>
}

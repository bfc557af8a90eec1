export type Language = 'en' | 'ja'

/** Everything the page says, in one language. */
export interface Texts {
  readonly title: string
  readonly tagline: string
  readonly intro: string
  readonly newChat: string
  /** The name of the other language, in that language. */
  readonly otherLanguage: string
  readonly conversation: string
  readonly you: string
  readonly assistant: string
  readonly thinking: string
  readonly thoughts: string
  readonly message: string
  readonly placeholder: string
  readonly hint: string
  readonly send: string
  readonly stop: string
  readonly retry: string
  readonly reconnect: string
  readonly reload: string
  readonly latest: string
  readonly loading: string
  readonly unreadableTitle: string
  readonly unreadableText: string
  readonly missingTitle: string
  readonly missingText: string
  readonly suggestionsLabel: string
  readonly suggestions: readonly string[]
  readonly sources: string
  readonly image: string
  readonly file: string
  readonly stopped: string
  readonly code: string
  readonly codeResult: string
  readonly usage: (input: number, output: number) => string
  readonly tool: {
    readonly arguments: string
    readonly result: string
    readonly details: string
    readonly preparing: string
    readonly running: string
    readonly waiting: string
    readonly done: string
    readonly failed: string
    readonly denied: string
  }
  readonly problem: {
    readonly rateLimited: string
    readonly rateLimitedText: (seconds: number | undefined) => string
    readonly disconnected: string
    readonly disconnectedText: string
    readonly busy: string
    readonly busyText: string
    readonly blocked: string
    readonly blockedText: string
    readonly unavailable: string
    readonly unavailableText: string
    readonly signedOut: string
    readonly signedOutText: string
    readonly refused: string
  }
}

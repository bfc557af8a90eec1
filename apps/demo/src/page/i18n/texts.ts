import type { Severity } from '../chat/approval.ts'
import type { ShellTexts } from './shell/shell-texts.ts'

export type Language = 'en' | 'ja'

/** Everything the page says, in one language. */
export interface Texts {
  readonly title: string
  readonly tagline: string
  readonly intro: string
  readonly newChat: string
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
  readonly approval: ApprovalTexts
  readonly shell: ShellTexts
  readonly music: {
    readonly track: (track: number) => string
    readonly mute: (track: number) => string
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

interface ApprovalTexts {
  /** For numbers and money. */
  readonly locale: string
  readonly deeds: {
    readonly payment: (money: string, recipient: string) => string
    readonly location: string
    readonly other: (toolName: string) => string
  }
  /** Of arguments that the reader may not know by the name the tool gives them. */
  readonly names: Readonly<Record<string, string>>
  readonly severity: Readonly<Record<Severity, string>>
  readonly waiting: string
  readonly running: string
  readonly denying: string
  readonly over: string
  readonly timeLeft: string
  readonly secondsLeft: (seconds: number) => string
  readonly approve: string
  readonly approveEdited: string
  /** Opens the form for the reason. */
  readonly deny: string
  readonly denyNow: string
  readonly edit: string
  readonly back: string
  readonly reason: string
  readonly badNumber: string
  readonly badJson: string
  readonly argument: string
  readonly value: string
  readonly asked: string
  readonly ran: string
  readonly votes: (given: number, needed: number) => string
  readonly states: Readonly<Record<'denied' | 'expired' | 'cancelled' | 'unknown', string>>
  readonly endings: Readonly<
    Record<'approved' | 'denied' | 'expired' | 'cancelled' | 'unknown', string>
  >
  readonly because: (ending: string, reason: string) => string
  /** By the code of the server's error; what is not here is told in the server's own words. */
  readonly refusals: Readonly<Record<string, string>>
  readonly inbox: {
    readonly label: (count: number) => string
    readonly title: string
    readonly empty: string
    readonly open: string
  }
}

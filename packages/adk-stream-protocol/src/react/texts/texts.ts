import type { DataParts } from '../../protocol/message.ts'
import type { Votes } from '../reading/approval.ts'

type Approval = DataParts['approval']

/** Everything that the components say, in one language. */
export interface AdkTexts {
  /** For numbers. */
  readonly locale: string
  readonly message: {
    readonly conversation: string
    readonly you: string
    readonly assistant: string
    readonly thinking: string
    readonly thoughts: string
    readonly sources: string
    readonly image: string
    readonly file: string
    readonly stopped: string
    readonly code: string
    readonly codeResult: string
    readonly usage: (inputTokens: string, outputTokens: string) => string
    readonly retry: string
  }
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
    /** What a call does, where `describeCall` has no better words. */
    readonly deed: (toolName: string) => string
    /** Of arguments that the reader may not know by the name the tool gives them. */
    readonly names: Readonly<Record<string, string>>
  }
  readonly approval: ApprovalTexts
  readonly inbox: {
    /** `hasMore`: at least so many are waiting. */
    readonly label: (count: number, hasMore?: boolean) => string
    readonly title: string
    readonly empty: string
    readonly open: string
    readonly deciding: string
    readonly unread: string
    readonly loadMore: string
    readonly loadingMore: string
    /** Takes back the reader's own vote. */
    readonly withdraw: string
  }
  readonly problem: ProblemTexts
  readonly connection: Readonly<Record<'idle' | 'connecting' | 'open' | 'lost' | 'closed', string>>
  readonly voice: VoiceTexts
}

/** What is said about approvals. */
export interface ApprovalTexts {
  readonly severity: Readonly<Record<NonNullable<Approval['severity']>, string>>
  readonly waiting: string
  readonly waitingForOthers: string
  readonly running: string
  readonly denying: string
  /** The decision was sent, and the server has not confirmed it. */
  readonly sending: string
  /** The decision cannot be sent at the moment. */
  readonly unsent: string
  /** It was approved and ran, and the tool reported a failure. */
  readonly failed: string
  readonly lookAlike: (words: string) => string
  readonly refused: string
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
  readonly votes: (votes: Votes, needed: number) => string
  readonly states: Readonly<Record<'denied' | 'expired' | 'cancelled' | 'unknown', string>>
  readonly endings: Readonly<Record<Exclude<Approval['state'], 'requested'>, string>>
  readonly because: (ending: string, reason: string) => string
  /** By the code of the server's error; what is not here is told in the server's own words. */
  readonly refusals: Readonly<Record<string, string>>
}

interface Notice {
  readonly title: string
  readonly text: string
}

/** What is said when there is no answer. */
export interface ProblemTexts {
  readonly rateLimited: string
  readonly rateLimitedText: (seconds: number | undefined) => string
  readonly disconnected: Notice
  readonly busy: Notice
  readonly blocked: Notice
  readonly unavailable: Notice
  /** Something was done before the answer failed. */
  readonly unfinished: Notice
  readonly signedOut: Notice
  readonly refused: string
  readonly retry: string
  readonly reconnect: string
  readonly reload: string
}

/** What is said about the voice. */
export interface VoiceTexts {
  readonly hold: string
  readonly handsFree: string
  readonly end: string
  readonly states: Readonly<
    Record<'off' | 'asking' | 'listening' | 'person-speaking' | 'model-speaking', string>
  >
  readonly level: string
  readonly problems: Readonly<
    Record<
      | 'permission-denied'
      | 'no-microphone'
      | 'in-use'
      | 'insecure-page'
      | 'unsupported'
      | 'lost-microphone'
      | 'lost-connection',
      string
    >
  >
}

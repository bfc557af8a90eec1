import type { LookAlike } from '../../shared/literal-text.ts'
import type { GrantOffer, ShownGrant } from '../../protocol/grants.ts'
import type { DataParts } from '../../protocol/message.ts'
import type { Votes } from '../reading/approval.ts'
import type { IncompleteReason } from '../reading/problem.ts'
import type { FieldProblem } from '../reading/read-fields.ts'
import type { WaitsFor } from '../reading/question.ts'
import type { PendingSum } from '../reading/preview.ts'

type Approval = DataParts['approval']

/** The labels of decisions for calls that follow. */
interface GrantLabels {
  /** The name of the list. */
  readonly title: string
  /** On a card, before the time at which the person gave the grant that decided the call. */
  readonly decided: string
  /** What the person allows besides this call. `pinned`: the values that stay the same. */
  readonly offer: (offer: GrantOffer & { readonly pinned: string }) => string
  /** What the person denies besides this call. */
  readonly offerDenial: string
  /** How much of a grant is used. */
  readonly used: (grant: ShownGrant) => string
  /** Before the time at which a grant ends. */
  readonly until: string
  /** Why a grant does not apply at the moment. */
  readonly suspended: string
  readonly revoke: string
  /** The label of the button for screen readers. `title` has the values that stay the same. */
  readonly revokeNamed: (title: string) => string
  /** Shown if a grant could not be revoked. */
  readonly revokeFailed: string
}

/** The labels of people who decide in the place of others. */
interface DelegationLabels {
  /** The name of the part of the page. */
  readonly title: string
  /** Who decides in the place of the person. */
  readonly given: (name: string) => string
  /** In whose place the person decides. */
  readonly received: (name: string) => string
  /** Before the time at which it ends. */
  readonly until: string
  readonly end: string
  /** The label of the button for screen readers. */
  readonly endNamed: (name: string) => string
  readonly person: string
  /** The choice of nobody in the list of people. */
  readonly nobody: string
  readonly time: string
  readonly days: (count: number) => string
  readonly give: string
  /** The server refused an action. */
  readonly failed: string
}

/** All labels of the components in one language. */
export interface AdkLabels {
  /** The BCP 47 tag with which numbers are formatted. */
  readonly locale: string
  readonly message: {
    readonly conversation: string
    readonly you: string
    readonly assistant: string
    readonly thinking: string
    readonly reasoning: string
    readonly sources: string
    readonly image: string
    readonly file: string
    readonly audio: string
    readonly stopped: string
    /** Under a message that was stopped before a server received it. */
    readonly unsent: string
    /** Under a reply that the model did not complete, by the reason. */
    readonly incomplete: Readonly<Record<IncompleteReason, string>>
    /** Under a reply that failed. `title` is that of `ProblemCard`. */
    readonly failed: (title: string) => string
    readonly code: string
    readonly codeResult: string
    readonly usage: (inputTokens: string, outputTokens: string) => string
    readonly retry: string
  }
  /** Code, pictures and other content of messages. */
  readonly content: {
    readonly copy: string
    readonly copied: string
    readonly copyFailed: string
    readonly enlarge: string
    readonly close: string
    readonly download: string
    /** The button that loads a picture of another server. */
    readonly loadPicture: (host: string) => string
  }
  /** The progress of an agent that runs its sub-agents as steps. */
  readonly steps: {
    readonly title: (agent: string) => string
    readonly iteration: (iteration: number, maxIterations: number | undefined) => string
    readonly pending: string
    readonly running: string
    readonly waiting: string
    readonly done: string
    readonly stopped: string
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
    /** Describes a call for which `describeCall` returns `undefined`. */
    readonly describe: (toolName: string) => string
    /**
     * Display names of tools and agents, by the name in your code. They take precedence over the titles of the server. Without one, a
     * name is shown in words: "Book trip" for `book_trip`.
     */
    readonly names: Readonly<Record<string, string>>
    /** Before the name of the function in the details of a call. */
    readonly functionName: string
    /** The state of a call that waits for a person inside it. */
    readonly waitingInside: string
    /** What a call waits for, when an agent that it runs has asked a person. */
    readonly waitsFor: (waits: WaitsFor) => string
    /** A list or an object without content, in the arguments. */
    readonly emptyValue: string
    /** Display names of arguments. Without one, an argument is shown by the name in its tool's schema. */
    readonly argumentNames: Readonly<Record<string, string>>
  }
  readonly approval: ApprovalLabels
  readonly grants: GrantLabels
  readonly delegations: DelegationLabels
  readonly question: QuestionLabels
  readonly signIn: SignInLabels
  readonly inbox: {
    /** `hasMore` is true if more approvals are pending than `count`. */
    readonly label: (count: number, hasMore?: boolean) => string
    readonly title: string
    readonly empty: string
    readonly open: string
    readonly sending: string
    readonly loadFailed: string
    readonly loadMore: string
    readonly loadingMore: string
    /** The button that withdraws the person's own vote. */
    readonly withdraw: string
    /** One decision for several calls of a tool. */
    readonly together: {
      readonly open: (count: number, tool: string) => string
      readonly approve: (count: number) => string
      readonly deny: (count: number) => string
    }
    /** What an approval says about the people in it. */
    readonly context: ApprovalContextLabels
    /** Before the time at which an approval expires. */
    readonly due: string
  }
  /** Who was told of an approval. */
  readonly notices: {
    readonly title: string
    readonly none: string
    readonly failed: string
    /** What a notice said, by its type. */
    readonly types: Readonly<Record<string, string>>
    readonly states: Readonly<Record<'waiting' | 'sent' | 'failed' | 'ended', string>>
    readonly attempts: (count: number) => string
  }
  /** Approvals with what became of them. */
  readonly history: {
    readonly title: string
    readonly empty: string
    readonly loading: string
    /** The accessible name of the filters. */
    readonly filters: string
    readonly state: string
    readonly tool: string
    /** The option of a filter that selects everything. */
    readonly any: string
    readonly deniedBy: string
    readonly reason: string
    /** The states of approvals, and the groups `decided` and `all`. */
    readonly states: Readonly<Record<string, string>>
  }
  /** Links with which another person decides an approval. */
  readonly share: {
    /** The button that creates a link. */
    readonly open: string
    readonly explanation: string
    /** The text alternative of the QR code. */
    readonly qrCode: string
    /** In the place of the QR code, for a link to `localhost`. */
    readonly thisMachineOnly: string
    /** The accessible name of the link. */
    readonly link: string
    readonly copy: string
    readonly copied: string
    /** Before the time at which the link expires. */
    readonly validUntil: string
    readonly failed: string
    /** What the person reads before they open the link. */
    readonly closed: string
    /** The button that opens the link. */
    readonly show: string
    /** Before the name of the person who sent the link. */
    readonly from: string
    readonly invalid: string
    readonly thanks: (state: string) => string
  }
  /** Notifies a person of an approval while the page is hidden. */
  readonly attention: {
    /** The title of the browser notification. */
    readonly title: string
    /** `minutes` is the time to decide. */
    readonly needed: (approval: {
      readonly action: string
      readonly severity: string | undefined
      readonly minutes: number
    }) => string
  }
  readonly composer: {
    /** The accessible name of the input. */
    readonly message: string
    readonly send: string
    readonly stop: string
    /** What Enter does now. */
    readonly enterSends: string
    readonly enterQueues: string
    readonly enterInterrupts: string
    /** The accessible name of the list of queued messages. */
    readonly queue: string
    readonly queued: string
    /** Follows `queued` where there is a keyboard. */
    readonly unqueueKey: string
    /** The reply failed, so that the queued messages were not sent. */
    readonly queueWaits: string
    /** Moves a queued message back to the input. */
    readonly unqueue: string
  }
  readonly problem: ProblemLabels
  readonly connection: Readonly<Record<'idle' | 'connecting' | 'open' | 'lost' | 'closed', string>>
  readonly connectionNotice: {
    /** The browser reports that there is no network. */
    readonly offline: string
    /** What happens to the interrupted message, reply or decision. */
    readonly kept: Readonly<Record<'message' | 'reply' | 'decision' | 'nothing', string>>
    readonly nextAttempt: (seconds: number) => string
    readonly tryNow: string
    /** What to do if the server rejects the credentials of the page. */
    readonly signInAgain: string
    /** The server refused a decision that had waited for the connection. */
    readonly refused: Readonly<Record<'approval' | 'denial' | 'answer', string>>
    readonly dismiss: string
  }
  readonly voice: VoiceLabels
}

/** Labels of the people, votes and steps of an approval. */
interface ApprovalContextLabels {
  readonly requestedBy: string
  /** The message of the person that led to the call. */
  readonly userText: string
  readonly votes: string
  readonly steps: string
  /** The person who reads. */
  readonly you: string
  /** A person without an account, with the creator of their link. */
  readonly byLink: (creator: string, name: string | undefined) => string
  /** A person who decided in the place of another one. */
  readonly byDelegate: (delegate: string, person: string) => string
  /** A role of the policy, such as `manager`. */
  readonly role: (role: string) => string
  /** `people` are those who may approve, `needed` how many of them must. */
  readonly step: (step: { readonly people: readonly string[]; readonly needed: number }) => string
  /** Adds the state of a step, and how many have approved, to its people. */
  readonly withStepState: (people: string, state: string) => string
  readonly stepStates: Readonly<Record<'done' | 'now' | 'later', string>>
  /** Why the person cannot decide, by `whyNot`. */
  readonly whyNot: Readonly<Record<string, string>>
}

/** Labels of cards that ask for a sign-in. `service` is the name of the service. */
interface SignInLabels {
  readonly title: string
  /** The title when the person has signed in or declined, or when the question has ended otherwise. */
  readonly endedTitle: string
  /** Why the person is asked. */
  readonly asks: (service: string, toolName: string) => string
  readonly scopes: string
  /** Opens the provider. */
  readonly start: (service: string) => string
  /** Opens the provider for another account. */
  readonly another: string
  readonly opening: string
  /** The provider is open in another window. */
  readonly opened: string
  /** The browser opened no window. */
  readonly blocked: string
  readonly link: (service: string) => string
  readonly apiKey: (service: string) => string
  readonly send: string
  readonly decline: string
  /** What to do if the sign-in cannot begin. */
  readonly failed: string
  /** The page cannot begin sign-ins. */
  readonly unavailable: string
  readonly waiting: string
  readonly states: Readonly<Record<Exclude<Approval['state'], 'requested'>, string>>
}

/** Labels of cards that ask for an answer. */
interface QuestionLabels {
  /** The title of the card, if the policy gives none. */
  readonly title: string
  /** The title of a question of an MCP server. */
  readonly from: (server: string) => string
  /** The titles of what a remote agent asks. */
  readonly remote: Readonly<Record<'answer' | 'approval' | 'signIn', (agent: string) => string>>
  /** What an answer shows for a box that is ticked, and for one that is not. */
  readonly yes: string
  readonly no: string
  /** The field of an answer that has only one. */
  readonly field: string
  /** Sends the answer. */
  readonly send: string
  /** Opens the form for the reason. */
  readonly decline: string
  /** Submits the form for the reason. */
  readonly confirmDecline: string
  /** Sends the answer to a question that has no fields. */
  readonly proceed: string
  /** Precedes the host of a URL that an MCP server asks the person to open. */
  readonly asksToOpen: string
  /** Opens the URL in a new tab. */
  readonly openUrl: (host: string) => string
  readonly waiting: string
  readonly states: Readonly<Record<Exclude<Approval['state'], 'requested'>, string>>
}

/** Labels of approval cards. */
interface ApprovalLabels {
  readonly severity: Readonly<Record<NonNullable<Approval['severity']>, string>>
  /** Precedes, for screen readers, the names of the agents that lead to a call. */
  readonly path: string
  readonly waiting: string
  readonly waitingForOthers: string
  readonly running: string
  readonly denying: string
  /** The decision is sent when the other calls of the message are decided. */
  readonly held: (approved: boolean) => string
  /** The decision was sent, and the server has not confirmed it. */
  readonly sending: string
  /** The decision is sent when the connection is back. */
  readonly waitingForConnection: (approved: boolean) => string
  /** The limits of a number in a form. Empty if it has none. */
  readonly describeLimits: (limits: { readonly min?: number; readonly max?: number }) => string
  /** A vote or an answer waits for the connection. `mayHaveArrived`: it was sent before, without a response. */
  readonly waitingDecision: (
    given: 'approval' | 'denial' | 'answer',
    mayHaveArrived: boolean,
  ) => string
  /** Takes back a decision that waits for the connection. */
  readonly cancelDecision: string
  /** The decision cannot be taken back, because it may have arrived. */
  readonly maybeSent: string
  /** The call was approved and ran, and its tool reported a failure. */
  readonly failed: string
  /** A word has letters of another script that look like those of the word. */
  readonly lookAlike: (found: LookAlike) => string
  /** A value of the call has marks: line breaks, runs of spaces, invisible characters or look-alike letters. */
  readonly deceptive: string
  /** A text in quotation marks. */
  readonly quote: (text: string) => string
  readonly refused: string
  /** The deadline has passed by the local clock. The server may still accept a decision. */
  readonly deadlinePassed: string
  readonly timeLeft: string
  readonly secondsLeft: (seconds: number) => string
  readonly approve: string
  /** The button that approves a call whose preview has an `action`. */
  readonly approveAction: (action: string) => string
  /** How to use a button that has to be held. */
  readonly holdHint: string
  /** The label of that button after a first, short press. */
  readonly pressAgain: string
  /** The label after a second press that came so early that it may have been a double click. */
  readonly pressedEarly: string
  /** The preview has changed since the person saw it. */
  readonly previewChanged: string
  /** The preview cannot be made, so the call cannot be approved. */
  readonly previewMissing: string
  readonly retryPreview: string
  /** Between a value before and a value after, for screen readers. */
  readonly becomes: string
  /** The value that the person saw before it changed. */
  readonly was: (value: string) => string
  readonly sum: (sum: PendingSum) => string
  /** Who approved or denied the call: the person (`own`) and other principals, by id. */
  readonly decidedBy: (by: NonNullable<Approval['by']>) => string
  /** The message of the person that decided the call. `words` is shown as it is. */
  readonly understoodFrom: (words: string) => string
  /** In place of a reply of the agent: the message of the person decided a call. Its card is above. */
  readonly decidedByReply: (approved: boolean) => string
  /** The person had typed something when the approval ended. */
  readonly unsent: string
  readonly approveEdited: string
  /** Approves an edited call that is described by a sentence. */
  readonly approveCall: (description: string) => string
  /** The headline of an edited call that cannot be described yet. */
  readonly editedCall: (title: string) => string
  /** The server is asked what the edited call would do. */
  readonly checkingEdit: string
  /** Next to a field: the value that the model requested. */
  readonly changedFrom: (value: string) => string
  /** Opens the form for the reason. */
  readonly deny: string
  /** Submits the form for the reason. */
  readonly confirmDeny: string
  readonly edit: string
  readonly back: string
  readonly reason: string
  /** Marks a field that may stay empty. Follows its name, with the space that the language needs. */
  readonly optional: string
  /** How to enter a list. */
  readonly onePerLine: string
  /** Why a field of the form is not valid. */
  readonly describeProblem: (problem: FieldProblem) => string
  readonly argument: string
  readonly value: string
  /** The column of the arguments that the model requested. */
  readonly requestedValue: string
  /** The column of the edited arguments that ran. */
  readonly approvedValue: string
  /** The column of edited arguments that were not sent. */
  readonly typedValue: string
  readonly votes: (votes: Votes, needed: number) => string
  readonly states: Readonly<Record<'denied' | 'expired' | 'cancelled' | 'unknown', string>>
  readonly outcomes: Readonly<Record<Exclude<Approval['state'], 'requested'>, string>>
  readonly withReason: (outcome: string, reason: string) => string
  /** Messages by error code. For other codes, the card shows the server's message. */
  readonly refusals: Readonly<Record<string, string>>
}

interface Notice {
  readonly title: string
  readonly text: string
}

/** Labels of `ProblemCard`. */
export interface ProblemLabels {
  readonly rateLimited: string
  readonly rateLimitedText: (seconds: number | undefined) => string
  /** The connection was lost during a reply. */
  readonly disconnected: Notice
  /** The connection was lost before a message arrived. */
  readonly unsent: Notice
  readonly busy: Notice
  readonly overloaded: Notice
  readonly blocked: Notice
  /** The model gave no usable reply. */
  readonly mistake: Notice
  /** The server has no access to the model. */
  readonly noAccess: Notice
  readonly unavailable: Notice
  /** A call ran before the reply failed. */
  readonly unfinished: Notice
  readonly signedOut: Notice
  readonly refused: string
  /** Why a message was refused, by error code. For other codes, the card shows the server's message. */
  readonly refusals: Readonly<Record<string, string>>
  readonly retry: string
  readonly reconnect: string
  readonly reload: string
  readonly dismiss: string
}

/** Labels of `VoiceStage`. */
export interface VoiceLabels {
  readonly hold: string
  readonly handsFree: string
  readonly end: string
  /** The visible text of the button that ends the conversation. `end` is its accessible name and contains this. */
  readonly endShort: string
  readonly states: Readonly<
    Record<'off' | 'asking' | 'listening' | 'person-speaking' | 'model-speaking', string>
  >
  /** States that only `VoiceStage` shows. */
  readonly stageStates: Readonly<
    Record<'connecting' | 'thinking' | 'muted' | 'approval' | 'answer', string>
  >
  readonly stage: string
  readonly mute: string
  readonly unmute: string
  readonly interrupt: string
  /** The heading of the approval above the controls. `count` are pending. */
  readonly pinned: (count: number) => string
  /** Moves to the card of the approval. */
  readonly showCard: string
  readonly level: string
  readonly problems: Readonly<
    Record<
      | 'permission-denied'
      | 'no-microphone'
      | 'in-use'
      | 'insecure-page'
      | 'unsupported'
      | 'taken-over'
      | 'lost-microphone'
      | 'lost-connection',
      string
    >
  >
}

interface Duration {
  readonly count: number
  readonly unit: 'minute' | 'hour' | 'day'
}

/** Returns a time in the unit in which people say it: up to two hours in minutes, up to two days in hours. */
export function toDuration(minutes: number): Duration {
  if (minutes < 120) return { count: minutes, unit: 'minute' }
  if (minutes < 48 * 60) return { count: Math.round(minutes / 60), unit: 'hour' }
  return { count: Math.round(minutes / (24 * 60)), unit: 'day' }
}

import type { Approval, ApprovalStateName } from '../../approvals/approval.ts'
import { assessRisk } from '../../approvals/risk.ts'
import type { Substitutes } from '../../approvals/substitutes.ts'
import { currentStep } from '../../approvals/deciders.ts'
import type { ShownPreview } from '../../protocol/preview.ts'
import type { Principal } from '../../server/auth/authenticate.ts'
import type { RefreshApproval } from '../../server/chats/host/policy-checks.ts'
import { withoutUndefined } from '../../shared/collections.ts'

/**
 * What happened to an approval, or what is asked for.
 *
 * @inline
 */
export type NoticeType =
  /** A person can decide now. */
  | 'approval.requested'
  /** The approval is still open. */
  | 'approval.reminder'
  /** One of several people has approved, or has withdrawn the approval. */
  | 'approval.voted'
  | 'approval.withdrawn'
  | 'approval.approved'
  | 'approval.denied'
  | 'approval.expired'
  | 'approval.cancelled'
  | 'approval.succeeded'
  | 'approval.failed'
  /** It is not known whether the call has run. */
  | 'approval.unknown'
  /** The person in `by` has approved each of their last calls, many of them within seconds (`pace`). The approval is the newest one. */
  | 'approver.fast'

/**
 * Something to tell people about an approval.
 *
 * @inline
 */
export interface Notice {
  /** The same for every attempt to send it. Receivers ignore a notice that they have seen. */
  readonly id: string
  readonly type: NoticeType
  /** When it happened or was requested, in ms since 1970. */
  readonly at: number
  readonly approval: ApprovalSummary
  /** To whom, as the plan says. */
  readonly to?: string
  /** Who decided, voted or withdrew. */
  readonly by?: string
  readonly reason?: string
  /** For `approver.fast`: the person's last decisions, which are all approvals, and how many came within `withinMs`. */
  readonly pace?: { readonly decisions: number; readonly fast: number; readonly withinMs: number }
}

/**
 * The approval that a notice is about.
 *
 * @inline
 */
export interface ApprovalSummary {
  readonly id: string
  /** Its state when the notice is sent. It may be newer than the notice. */
  readonly state: ApprovalStateName
  readonly toolName: string
  /** The arguments of the call. They may be private: leave them out where others can read. */
  readonly args: Readonly<Record<string, unknown>>
  readonly title?: string
  readonly hint?: string
  /** What the call would do, as the owner of the chat sees it. Absent if there is none, and when the approval is decided. */
  readonly preview?: ShownPreview
  /** As the policy says, or higher if the arguments could mislead a person. */
  readonly severity?: 'low' | 'medium' | 'high'
  /** Whether the arguments could mislead a person. */
  readonly misleading?: true
  /** What kind of question it is. Absent for a call that needs approval. */
  readonly kind?: string
  /** The owner of the chat. */
  readonly principalId: string
  readonly chatId: string
  readonly requestedAt: number
  readonly deadline: number
  /** The index of the step of its chain that needs votes. Undefined if it is decided. */
  readonly step?: number
  /** Who may decide that step. */
  readonly deciders: {
    readonly principals: readonly string[]
    readonly roles: readonly string[]
    /** The people who decide in the place of these principals for now, if the policy says `mayDelegate`. Only in the argument of a plan. */
    readonly delegates?: readonly string[]
  }
}

/** A way to tell people: `webhook()`, or an object of the application. */
export interface NoticeChannel {
  /**
   * Sends a notice. Called again if it throws, with increasing delays for three days. Return `gone` if the receiver wants no further
   * notices of this channel.
   */
  readonly send: (notice: Notice, attempt: NoticeAttempt) => Promise<NoticeResult | void>
  /**
   * Handles a request of the service that the channel uses, such as a click on a button. The bridge serves it at `POST /channels/<name>`, without
   * `authenticate`: check the signature of the service first.
   */
  readonly receive?: (request: ChannelRequest, actions: ChannelActions) => Promise<ChannelReply>
  /**
   * Receives what people do in the service, if no request of it arrives: over a connection that the channel opens. Called once, when the
   * bridge has started. Resolves when the signal is aborted.
   */
  readonly listen?: (actions: ChannelActions, until: ChannelListening) => Promise<void>
  /**
   * Lets people add where they want to be told, such as a browser. The bridge serves it at `/channels/<name>/addresses`, and keeps the addresses
   * of each person. Needs a store with `personalRecords`.
   */
  readonly addresses?: {
    /** What a page needs to create an address, such as a public key. */
    readonly info: unknown
    /** Checks an address that a page sends. Returns undefined if it is none. */
    readonly read: (given: unknown) => ChannelAddress | undefined
  }
  /** Whether a person may approve a call in this channel. Denying is always possible. Default: unless its severity is high or a value could mislead. */
  readonly mayApprove?: (approval: ApprovalSummary) => boolean
  /** Identifies the receiver. After `gone`, the channel is used again when this changes. Default: none. */
  readonly address?: string
}

/**
 * An attempt to send a notice.
 *
 * @inline
 */
interface NoticeAttempt {
  /** 1 for the first one. */
  readonly number: number
  /** The time of the attempt, in ms since 1970, by the clock of the store. The clock of this server may be wrong. */
  readonly at: number
  /** How the channel refers to the message that it sent about this approval before, for example to edit it. */
  readonly reference?: string
  /** Aborted when the attempt takes too long, and when the bridge closes. */
  readonly signal: AbortSignal
  /** The addresses that people have added. Only for channels with `addresses`. */
  readonly addresses?: ChannelAddresses
}

/**
 * Where a person wants to be told.
 *
 * @inline
 */
export interface ChannelAddress {
  /** The same for the same place, so that it belongs to one person only. */
  readonly id: string
  /** What the channel needs to send there. */
  readonly value: string
}

/**
 * The addresses that people have added to a channel.
 *
 * @inline
 */
export interface ChannelAddresses {
  readonly list: (principalId: string) => Promise<readonly ChannelAddress[]>
  /** Removes an address that no longer exists. */
  readonly remove: (principalId: string, id: string) => Promise<void>
}

/**
 * The result of an attempt that did not throw.
 *
 * @inline
 */
export interface NoticeResult {
  /** What the receiver answered, for the log. At most 500 characters are kept. */
  readonly answer?: string
  /** How the channel refers to the message that it has sent. */
  readonly reference?: string
  /** The receiver wants no further notices. */
  readonly gone?: true
  /** Nobody receives this notice, such as a person without a browser. It counts as not sent. */
  readonly unsent?: true
}

/**
 * A request of the service that a channel uses.
 *
 * @inline
 */
interface ChannelRequest {
  readonly headers: Headers
  /** The body as it was sent. Signatures cover its bytes. */
  readonly body: string
}

/**
 * How long a channel listens, and where it reports errors.
 *
 * @inline
 */
interface ChannelListening {
  /** Aborted when the bridge closes. */
  readonly signal: AbortSignal
  readonly onError: (error: unknown) => void
}

/**
 * The response to the service.
 *
 * @inline
 */
export interface ChannelReply {
  readonly status: number
  /** Sent as JSON. Default: an empty body. */
  readonly body?: unknown
}

/**
 * What a channel can do for a person.
 *
 * @inline
 */
export interface ChannelActions {
  /** Returns the time, in ms since 1970, by the clock of the store. The clock of this server may be wrong. */
  readonly now: () => Promise<number>
  /** Returns an approval that the person may see. */
  readonly read: (person: Principal, approvalId: string) => Promise<ApprovalSummary | undefined>
  /** Decides, as the person would with `POST /approvals/:id`. Throws a `ProtocolError` if that is refused. */
  readonly decide: (person: Principal, decision: ChannelDecision) => Promise<void>
}

/**
 * A decision of a person in a channel.
 *
 * @inline
 */
interface ChannelDecision {
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string
  /** The digest of the preview that the person saw. The approval is refused if the preview is another one now. */
  readonly preview?: string
  /** The account of the person in the service, for the audit record. */
  readonly account: string
}

/** Thrown by a channel to say when to try again. */
export class NoticeError extends Error {
  override readonly name = 'NoticeError'
  /** The time until the next attempt, in ms. Undefined: the usual delay. */
  readonly retryMs: number | undefined

  constructor(message: string, options: ErrorOptions & { readonly retryMs?: number } = {}) {
    super(message, options)
    this.retryMs = options.retryMs
  }
}

/**
 * One entry of a plan: who is told, how and when.
 *
 * @inline
 */
export interface PlannedNotice {
  /** The name of a channel. */
  readonly tell: string
  /** The time until then, in ms. Default 0. A later notice is not sent if the step was decided meanwhile. */
  readonly after?: number
  /** To whom. The channel knows what it means: a person, a group, an address. */
  readonly to?: string
}

/**
 * Returns who is told of an approval, how and when. Called for each new approval, and for each further step of its chain.
 *
 * @inline
 */
type NoticePlan = (approval: ApprovalSummary) => readonly PlannedNotice[]

/**
 * Options of notices.
 *
 * @inline
 */
export interface NotifyOptions {
  /** The channels by name. */
  readonly channels: Readonly<Record<string, NoticeChannel>>
  /**
   * Who is told of an approval, how and when. Called for each new approval, and when a further step of its chain begins. If it throws,
   * or without it, every channel is told at once.
   */
  readonly plan?: NoticePlan
  /**
   * Reports people who approve every call, many of them faster than one can read it, as a notice `approver.fast` and an entry of `log`.
   * Default: nobody is reported.
   */
  readonly fastApprovals?: FastApprovalsOptions
}

/**
 * When a person is reported who approves every call, and to whom.
 *
 * @inline
 */
export interface FastApprovalsOptions {
  /** The name of the channel. Default: only `log` has it. */
  readonly tell?: string
  /** To whom. The channel knows what it means. */
  readonly to?: string
  /** How many decisions of a person, within a day, must all be approvals. Default 20. */
  readonly decisions?: number
  /** At least half of them must be faster than this, in ms. Default 2,000. */
  readonly withinMs?: number
}

/** Returns what channels and plans learn about an approval. `step` is the one that it is about. Default: the one that needs votes. */
export function toSummary(
  approval: Approval,
  step: number | undefined = findOpenStep(approval),
  preview?: ShownPreview,
): ApprovalSummary {
  const { id, state, toolName, args, terms, chat, requestedAt, deadline } = approval
  const { title, hint, kind } = terms
  const { severity, misleading } = assessRisk(approval, preview)
  const { principals = [], roles = [] } = terms.chain[step ?? -1] ?? {}
  return {
    id,
    state: state.name,
    toolName,
    args,
    ...withoutUndefined({ title, hint, preview, severity, misleading, kind, step }),
    principalId: chat.principalId,
    chatId: chat.chatId,
    requestedAt,
    deadline,
    deciders: { principals, roles },
  }
}

/** Adds the people who decide in the place of the principals of a step. */
export async function addSubstitutes(
  summary: ApprovalSummary,
  approval: Approval,
  substitutes: Substitutes | undefined,
): Promise<ApprovalSummary> {
  const { deciders } = summary
  const delegates = (await substitutes?.of(approval, deciders.principals)) ?? []
  return delegates.length === 0 ? summary : { ...summary, deciders: { ...deciders, delegates } }
}

/** Returns what a channel shows of an approval: its summary, with the hint and the preview of now. */
export async function readSummary(
  refresh: RefreshApproval,
  approval: Approval,
  step?: number,
): Promise<ApprovalSummary> {
  const current = await refresh(approval, approval.chat.principalId)
  const { preview } = current
  return toSummary(current.approval, step, preview.state === 'made' ? preview.preview : undefined)
}

/** Whether a person may approve a call in a channel without `mayApprove`. */
export function isHarmless({ severity, misleading }: ApprovalSummary): boolean {
  return severity !== 'high' && misleading !== true
}

/** Returns the index of the step of an approval that people can decide now. */
export function findOpenStep(approval: Approval): number | undefined {
  return approval.state.name === 'requested' ? currentStep(approval) : undefined
}

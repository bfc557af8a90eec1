import type { LockStore } from '../locks/lock-store.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import type { Approval, ApprovalStateName } from './approval.ts'
import type { QuestionKind } from '../protocol/question-terms.ts'
import type { AuditEntry, AuditRecord } from './audit-entry.ts'
import type { Decider } from './deciders.ts'
import type { Transition } from './next-approval.ts'

/**
 * Stores approvals and their audit record, and the locks and leases of the processes that work on them. Every method is atomic. Its
 * effect is durable when the promise resolves, and visible to all processes at once.
 */
export interface ApprovalStore extends LockStore {
  /** Returns the current time in ms since 1970. All deadlines use this clock. Leases use a separate one, see `heartbeat`. */
  now(): Promise<number>

  /**
   * Adds an approval with its first audit entry. Adds nothing if the id or the tool call is already known, or if the
   * quota is used up. With `decided`, also stores these transitions in the same transaction; then the quota does not count, and nothing
   * is added if `replaceAll` would refuse them (`refused`).
   */
  insert(
    approval: Approval,
    entry: AuditEntry,
    quota: PendingQuota,
    decided?: readonly Transition[],
  ): Promise<'inserted' | 'exists' | 'too-many-pending' | 'refused'>
  get(id: string): Promise<Approval | undefined>
  /** Returns an approval and the time at which it was read. For stores in which `now` takes as long as a read. */
  getWithTime?(id: string): Promise<ReadApproval>
  findByCall(chat: AppChatRef, toolCallId: string): Promise<Approval | undefined>
  /**
   * Stores a transition and its audit entry. Returns false, and stores nothing, if the stored version is not the
   * preceding one, if the time of `before` has passed, if the worker in `silent` has renewed its lease, or if `writes` cannot be stored.
   */
  replace(transition: Transition): Promise<boolean>
  /**
   * Stores consecutive transitions of one approval in one transaction. Returns false, and stores nothing, if `replace`
   * would refuse the first one.
   */
  replaceAll(transitions: readonly Transition[]): Promise<boolean>
  /** Lists approvals, oldest first. */
  list(filter: ApprovalFilter): Promise<Approval[]>
  /**
   * Lists approvals that a principal may see, pending and decided, newest first. Without it, clients cannot read decided approvals of
   * other chats.
   */
  listVisible?(filter: VisibleFilter): Promise<Approval[]>
  /** Counts the pending approvals of an application, up to `limit`. For metrics, so it must be cheap. */
  countPending?(appName: string, limit: number): Promise<number>
  /** Lists pending approvals whose deadline has passed, most overdue first. */
  due(limit: number): Promise<Approval[]>

  /**
   * Lists approvals of an application whose outcome may be missing from the conversation: approved but not started,
   * or ended at least `leaseMs` ago and not marked as reported. Leaves out chats that a worker with a valid lease has
   * locked, because that worker may be about to report. Takes principals in turn, so that many approvals of one
   * principal do not delay those of another.
   */
  unreported(filter: UnreportedFilter): Promise<Approval[]>
  /**
   * Records that the conversation shows the outcome of these calls. Ignores calls that are approved but not started.
   * The record may be lost in a power failure.
   */
  markReported(chat: AppChatRef, toolCallIds: readonly string[]): Promise<void>

  /** Reads the audit record in write order. */
  audit(filter: AuditFilter): AsyncIterable<AuditRecord>
  /** Returns the `seq` of the newest audit entry, or 0 if there is none. */
  lastSeq(): Promise<number>

  /** Checks that no audit entry was changed or removed. For stores that other programs can write to. */
  verifyAudit?(check?: AuditCheck): Promise<AuditVerification>

  /**
   * Lists running calls whose worker has not renewed its lease for `leaseMs`. A heartbeat, `startLeaseRenewal` and
   * the claim itself renew it.
   */
  stale(leaseMs: number): Promise<Approval[]>

  /**
   * Cancels all pending and approved calls of a chat and returns them. Marks all calls of the chat as reported. Keeps
   * the audit record.
   */
  deleteChat(chat: AppChatRef, reason: string): Promise<Approval[]>
}

/** An approval and the time at which it was read, by the clock of {@link ApprovalStore.now}. */
export interface ReadApproval {
  /** Undefined if there is none. */
  readonly approval: Approval | undefined
  readonly now: number
}

/** Selects approvals whose outcome may be missing from the conversation. */
export interface UnreportedFilter {
  readonly appName: string
  readonly leaseMs: number
  /** Ids of approvals to leave out. */
  readonly except?: readonly string[]
  readonly limit: number
}

/** How many approvals may be pending at the same time. */
export interface PendingQuota {
  readonly perChat: number
  /** The limit for all chats of a principal in one application. */
  readonly perPrincipal: number
}

/** Selects approvals that meet all given conditions. */
export interface ApprovalFilter {
  readonly appName?: string
  /** Approvals in chats of this principal. */
  readonly principalId?: string
  readonly chat?: AppChatRef
  readonly states?: readonly ApprovalStateName[]
  /** Questions of this kind. */
  readonly kind?: QuestionKind
  /**
   * Pending approvals in chats of this principal, pending approvals that they can decide now, and those for which
   * they can withdraw their vote.
   */
  readonly waitsFor?: Decider
  readonly limit: number
  /** The id of the last approval of the previous page. */
  readonly after?: string
}

/** Selects approvals that a principal may see and that meet all given conditions. */
export interface VisibleFilter {
  readonly appName: string
  /** The principal who reads. They may see approvals in their chats, and those of which they may decide a step. */
  readonly reader: Decider
  readonly states?: readonly ApprovalStateName[]
  readonly toolName?: string
  /** Approvals in chats of this principal. */
  readonly requester?: string
  readonly limit: number
  /** The id of the last approval of the previous page. */
  readonly after?: string
}

/** Selects entries of the audit record that meet all given conditions. */
export interface AuditFilter {
  readonly appName?: string
  readonly approvalId?: string
  readonly chat?: AppChatRef
  /** Entries at or after this time, in ms since 1970. */
  readonly from?: number
  /** Entries before this time, in ms since 1970. */
  readonly to?: number
  /** The `seq` of the last entry that the caller has read. */
  readonly after?: number
  readonly limit?: number
}

/** Which part of the audit record to check. */
export interface AuditCheck {
  /** How many of the newest entries to check. Default: all. */
  readonly newest?: number
  /**
   * A head that an earlier check returned and that was kept outside the database. The check fails if its entry is
   * missing or changed.
   */
  readonly head?: AuditHead
}

/** The newest entry of an audit record. Its hash covers all entries before it. */
export interface AuditHead {
  readonly seq: number
  readonly hash: string
}

/** The result of a check of the audit record. */
export interface AuditVerification {
  /** How many entries are intact. */
  readonly entries: number
  /** The newest intact entry. Undefined if the record is empty. */
  readonly head: AuditHead | undefined
  /** The newest of the entries that retention has removed. Undefined if it has removed none. */
  readonly removed?: AuditHead
  /**
   * The first entry that was changed or is missing. Undefined if the record is intact. `removed`: retention has removed the
   * entry of the given head, so the head can no longer verify the record.
   */
  readonly fault?: { readonly seq: number; readonly reason: 'changed' | 'missing' | 'removed' }
}

import type { Approval, ApprovalChat, ApprovalStateName } from './approval.ts'
import type { AuditEntry, AuditRecord } from './audit-entry.ts'
import type { Decider, Transition } from './next-approval.ts'

/** Where approvals live. Every method is atomic, durable when it answers, and seen by every process at once. */
export interface ApprovalStore {
  /** The one clock that counts for deadlines, in ms since 1970. Leases go by a clock of their own, which nobody can set. */
  now(): Promise<number>

  /** Adds an approval with its first audit entry, unless the call or the id is known, or too many wait already. */
  insert(
    approval: Approval,
    entry: AuditEntry,
    quota: PendingQuota,
  ): Promise<'inserted' | 'exists' | 'too-many-pending'>
  get(id: string): Promise<Approval | undefined>
  findByCall(chat: ApprovalChat, toolCallId: string): Promise<Approval | undefined>
  /**
   * Stores a transition with its audit entry if the stored version is still the one before it, if the store's clock is still
   * before the transition's limit, and if the worker that it takes a call from is still silent; answers whether it did.
   */
  replace(transition: Transition): Promise<boolean>
  /** Lists approvals, the oldest first. */
  list(filter: ApprovalFilter): Promise<Approval[]>
  /** Those that wait and whose deadline has passed, the longest overdue first. */
  due(limit: number): Promise<Approval[]>

  /**
   * Those of an application of which nobody has noted that their conversation shows what came of them: given
   * and not begun, or ended for `leaseMs`. Without those of chats that a living worker holds, for it may be about to tell. The
   * first of each principal come before the second of any, so that many of one principal do not keep back those of another.
   */
  unreported(filter: UnreportedFilter): Promise<Approval[]>
  /** Notes that the conversation shows how these calls ended; one that is given and not begun has not ended. May be lost with the power. */
  markReported(chat: ApprovalChat, toolCallIds: readonly string[]): Promise<void>

  /** Reads the audit record in the order of writing. */
  audit(filter: AuditFilter): AsyncIterable<AuditRecord>
  /** The `seq` of the newest entry of the audit record; 0 while there is none. */
  lastSeq(): Promise<number>

  /** Checks that no entry of the audit record was changed or removed. For stores that other programs can write to. */
  verifyAudit?(check?: AuditCheck): Promise<AuditVerification>

  /** Signs that a worker lives. */
  heartbeat(worker: string): Promise<void>
  /**
   * Signs for a worker from outside of its event loop, as long as the worker is busy and its event loop is not blocked for longer
   * than `maxBlockedMs`. The store ends it when it is closed. For stores that other processes can open.
   */
  startLeaseRenewal?(lease: LeaseOptions): LeaseRenewal
  /** Those that run although their worker gave no sign, by `beat`, `startLeaseRenewal` or the claim itself, for `leaseMs`. */
  stale(leaseMs: number): Promise<Approval[]>

  /**
   * Gives a chat to one worker until it is unlocked, or until the worker gave no sign, by `beat` or by this call, for `leaseMs`.
   * The worker that holds it gets it again, under the new token. From then until `unlockChat`, the sessions of this store refuse
   * what this process writes into the chat if the stored token is another. A lock need not outlive a loss of power.
   */
  lockChat(chat: ApprovalChat, lock: ChatLock): Promise<boolean>
  /** Who holds a chat, dead or alive; nothing when nobody does. */
  findLockHolder(chat: ApprovalChat): Promise<ChatLockHolder | undefined>
  /** The chats of a principal that other workers hold which gave a sign within `leaseMs`. */
  listLockedByOthers(filter: LockedChatsFilter): Promise<string[]>
  /** Gives a chat back; a token that does not hold it changes nothing. */
  unlockChat(chat: ApprovalChat, token: string): Promise<void>

  /** Cancels all of a chat that has not begun to run, at once, and answers those; nobody is told any more. The audit record stays. */
  deleteChat(chat: ApprovalChat, reason: string): Promise<Approval[]>
}

/** What a worker wants to keep while its event loop is blocked. */
export interface LeaseOptions {
  readonly worker: string
  readonly leaseMs: number
  /** How long the event loop may be blocked before the lease is given up, in ms. */
  readonly maxBlockedMs: number
  readonly onError: (error: unknown) => void
}

/** Signs for a worker from outside of its event loop. */
export interface LeaseRenewal {
  /** Whether the worker has anything to lose. */
  setBusy(busy: boolean): void
}

export interface UnreportedFilter {
  readonly appName: string
  readonly leaseMs: number
  /** Ids that are not wanted. */
  readonly except?: readonly string[]
  readonly limit: number
}

export interface ChatLock {
  readonly worker: string
  /** Names this lock and no other, of this worker or another one: a fencing token. */
  readonly token: string
  readonly leaseMs: number
  /** Whether nobody waits for what is done with the chat: others wait for its end and are not turned away. */
  readonly background: boolean
}

export interface LockedChatsFilter {
  readonly appName: string
  readonly principalId: string
  /** Who asks. */
  readonly worker: string
  readonly leaseMs: number
}

export interface ChatLockHolder {
  readonly token: string
  readonly background: boolean
  /** When it was last known to live, by the store's lease clock. */
  readonly lastSeenAt: number
}

/** How many approvals may wait at once. */
export interface PendingQuota {
  readonly perChat: number
  /** In all chats of the principal in one application. */
  readonly perPrincipal: number
}

/** What is listed must meet every condition given. */
export interface ApprovalFilter {
  readonly appName?: string
  /** Those of this principal's chats. */
  readonly principalId?: string
  readonly chat?: ApprovalChat
  readonly states?: readonly ApprovalStateName[]
  /** Those that are pending in this principal's chats, that they can decide now, or for which they can withdraw their vote. */
  readonly waitsFor?: Decider
  readonly limit: number
  /** The id of the last approval of the page before. */
  readonly after?: string
}

export interface AuditFilter {
  readonly appName?: string
  readonly approvalId?: string
  readonly chat?: ApprovalChat
  /** The `seq` of the last entry known. */
  readonly after?: number
  readonly limit?: number
}

/** How much of the audit record is checked. */
export interface AuditCheck {
  /** Only so many of the newest entries. Default: all. */
  readonly newest?: number
  /** A head that was noted before, outside of the database: its entry must still be there. */
  readonly head?: AuditHead
}

/** The newest entry of an audit record: its hash stands for all entries before it. */
export interface AuditHead {
  readonly seq: number
  readonly hash: string
}

/** What a check of the audit record has found. */
export interface AuditVerification {
  /** How many entries are as they were written, and follow the entry before them. */
  readonly entries: number
  /** The newest of them; nothing for an empty record. */
  readonly head: AuditHead | undefined
  /** The first entry that was changed, or that is missing; nothing if the record is whole. */
  readonly fault?: { readonly seq: number; readonly reason: 'changed' | 'missing' }
}

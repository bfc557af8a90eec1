export type { SqliteStoreOptions } from './sqlite/sqlite-store.ts'
export { openSqliteStore } from './sqlite/sqlite-store.ts'
export type { FirstMessageReader, RewindableSessionService, RewindRequest, Store } from './store.ts'
export { isRewindable } from './store.ts'
export type { StoreErrorCode } from './store-error.ts'
export { StoreError } from './store-error.ts'
export type { ChatEntry, ChatNote, ChatStore } from './store.ts'
export type {
  CredentialStore,
  NewAttempt,
  NewCredential,
  RefreshLock,
  StoredCredential,
  TakenAttempt,
} from './store.ts'
export type { LiveSessionStore, SaveOptions } from './store.ts'
export type { BrowserCall, BrowserCallStore, DueBrowserCalls, PendingBrowserCall } from './store.ts'
export type {
  ApprovalFilter,
  ApprovalStore,
  AuditCheck,
  AuditFilter,
  AuditHead,
  AuditVerification,
  ChatLock,
  ChatLockHolder,
  HeldLock,
  LeaseOptions,
  LeaseRenewal,
  LockedChatsFilter,
  PendingQuota,
  UnreportedFilter,
  WorkerLease,
} from '../approvals/approval-store.ts'
export type {
  Approval,
  ApprovalState,
  ApprovalStateName,
  ApprovalStep,
  ApprovalTerms,
  Vote,
} from '../approvals/approval.ts'
export type { AuditEntry, AuditEvent, AuditRecord } from '../approvals/audit-entry.ts'
export type { Decider } from '../approvals/deciders.ts'
export { isWaitingFor } from '../approvals/deciders.ts'
export type { Transition } from '../approvals/next-approval.ts'
export { cancelApproval, isUnreported } from '../approvals/next-approval.ts'
export type { AppChatRef } from '../shared/chat-ref.ts'
export type { Owner, RemovalCondition, RetentionStore, UnusedChats } from './store.ts'

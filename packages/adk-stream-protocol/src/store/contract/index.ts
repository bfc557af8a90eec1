export type { ContractDatabase, ContractTest, StoreContractOptions } from './contract-test.ts'
export { CONTRACT_START } from './contract-test.ts'
export { storeContract } from './store.contract.ts'
export type {
  ChatEntry,
  ChatNote,
  ChatStore,
  FirstMessageReader,
  LockedSessionReader,
  OrphanPage,
  Orphans,
  RemovalCondition,
  RetentionStore,
  RewindableSessionService,
  RewindRequest,
  UnusedChats,
} from '../store.ts'
export type {
  CredentialStore,
  NewAttempt,
  NewCredential,
  RefreshLock,
  StoredCredential,
  TakenAttempt,
} from '../tables/credentials.ts'
export type {
  ChannelAddress,
  UndeliveredNotices,
  NewNotice,
  NoticeClaim,
  NoticeState,
  NoticeStore,
  PlannedNotices,
  SettledNotice,
  StoredNotice,
  NotifiedChannel,
} from '../tables/notices.ts'
export type {
  NewPersonalRecord,
  PersonalRecord,
  PersonalRecordStore,
} from '../tables/personal-records.ts'
export type { RequiredRecord } from '../../approvals/required-record.ts'
export type { GrantStore } from '../tables/grants.ts'
export type { Grant, GrantWrite, StoredGrant } from '../../approvals/grant.ts'
export type { LiveSessionStore, SaveOptions } from '../tables/live-sessions.ts'
export type {
  BrowserCall,
  BrowserCallStore,
  DueBrowserCalls,
  PendingBrowserCall,
} from '../tables/browser-calls.ts'
export type { FeatureParts } from '../features.ts'
export type { Owner } from '../keys.ts'
export type { StoreErrorCode } from '../store-error.ts'
export type {
  ApprovalFilter,
  ApprovalStore,
  AuditCheck,
  AuditFilter,
  AuditHead,
  AuditVerification,
  PendingQuota,
  ReadApproval,
  UnreportedFilter,
  VisibleFilter,
} from '../../approvals/approval-store.ts'
export type {
  ChatLock,
  ChatLockHolder,
  HeldLock,
  LeaseOptions,
  LeaseRenewal,
  LockedChatsFilter,
  LockStore,
  WorkerLease,
} from '../../locks/lock-store.ts'
export type {
  Approval,
  ApprovalState,
  ApprovalStateName,
  ApprovalStep,
  ApprovalTerms,
  Vote,
} from '../../approvals/approval.ts'
export type { ApprovalLink } from '../../approvals/link.ts'
export type { AuditEntry, AuditEvent, AuditRecord } from '../../approvals/audit-entry.ts'
export { type Decider, isWaitingFor } from '../../approvals/deciders.ts'
export { cancelApproval, isUnreported, type Transition } from '../../approvals/next-approval.ts'
export type {
  Hint,
  HintListener,
  Relay,
  RelayTurn,
  Signal,
  Signals,
  TurnChange,
  TurnRows,
  TurnUpdate,
} from '../../relay/relay.ts'
export type { AppChatRef } from '../../shared/chat-ref.ts'

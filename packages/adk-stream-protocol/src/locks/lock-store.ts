import type { AppChatRef } from '../shared/chat-ref.ts'

/** A chat that a worker has locked, and the token of the lock. */
export interface OwnLock {
  readonly chat: AppChatRef
  readonly token: string
}

/** Stores worker leases and chat locks. The approval store of a bridge also is its lock store: a write checks the lock's token. */
export interface LockStore {
  /**
   * Renews the lease of a worker. Since the last renewal of any worker, at most `maxGapMs` count as lease time: a longer gap means
   * that no worker could write. Default 5,000.
   */
  heartbeat(worker: string, maxGapMs?: number): Promise<void>
  /**
   * Advances the lease clock as `heartbeat` does, if anything waits for a lease to expire. For stores that several processes can
   * open: one without it lets lease time pass while no process can write.
   */
  tickLeases?(maxGapMs: number): Promise<void>
  /** Ends the lease of a worker that closes and does not return. For stores that several processes can open. */
  endLease?(worker: string): Promise<void>
  /** Whether a worker has ended its lease. The store may forget this after a day. */
  hasEnded?(worker: string): Promise<boolean>
  /**
   * Renews the lease of a worker outside its event loop while the worker is busy. Stops if the event loop is blocked
   * for longer than `maxBlockedMs`, and when the store is closed. For stores that several processes can open.
   */
  startLeaseRenewal?(lease: LeaseOptions): LeaseRenewal
  /**
   * Locks a chat for a worker until the chat is unlocked or the worker has not renewed its lease for `leaseMs`.
   * Returns false if another worker holds the lock. A worker that holds the lock gets it again with the new token.
   * Until `unlockChat`, the sessions of this store reject writes of this process to the chat if the stored token is a
   * different one. A lock need not survive a power failure.
   */
  lockChat(chat: AppChatRef, lock: ChatLock): Promise<boolean>
  /** Returns the holder of a chat lock, even if its lease has expired. Returns undefined if the chat is not locked. */
  findLockHolder(chat: AppChatRef): Promise<ChatLockHolder | undefined>
  /** Lists the locks of a worker, even if its lease has expired. */
  listLocks(worker: string): Promise<OwnLock[]>
  /** Lists the chats of a principal that other workers with a valid lease have locked. */
  listLockedByOthers(filter: LockedChatsFilter): Promise<string[]>
  /** Lists the workers that the store knows, with their leases and locks. For `doctor`. */
  listWorkers?(): Promise<WorkerLease[]>
  /** Unlocks a chat. Does nothing if another token holds the lock. */
  unlockChat(chat: AppChatRef, token: string): Promise<void>
}

/** A lease that must be renewed while the event loop of the worker is blocked. */
export interface LeaseOptions {
  readonly worker: string
  readonly leaseMs: number
  /** How long the event loop may be blocked before the lease expires, in ms. */
  readonly maxBlockedMs: number
  readonly onError: (error: unknown) => void
}

/** Renews the lease of a worker outside its event loop. */
export interface LeaseRenewal {
  /** Starts or stops the renewal. A worker is busy while it runs a call or holds a chat lock. */
  setBusy(busy: boolean): void
}

/** A lock that a worker acquires on a chat. */
export interface ChatLock {
  readonly worker: string
  /** A fencing token: unique for each lock. */
  readonly token: string
  readonly leaseMs: number
  /** Whether the work in the chat is background work. Requests then wait for the lock instead of failing. */
  readonly background: boolean
  /** Whether the session of the chat is read next. A store may then read it in the same step. See `LockedSessionReader`. */
  readonly reads?: boolean
}

/** Selects chats of a principal that other workers have locked. */
export interface LockedChatsFilter {
  readonly appName: string
  readonly principalId: string
  /** The worker that asks. Its own locks are left out. */
  readonly worker: string
  readonly leaseMs: number
}

/** The present lock of a chat. */
export interface ChatLockHolder {
  readonly token: string
  readonly background: boolean
  /** When the holder last renewed its lease, by the lease clock of the store. */
  readonly lastSeenAt: number
}

/** A worker as the store knows it: a server process that runs, has ended, or has crashed. */
export interface WorkerLease {
  readonly worker: string
  /** The time since it renewed its lease, in ms. */
  readonly silentMs: number
  /** Whether it has closed and does not return. */
  readonly ended: boolean
  readonly locks: readonly HeldLock[]
}

/** A chat lock that a worker holds. */
export interface HeldLock {
  readonly chat: AppChatRef
  readonly background: boolean
  /** How long it has held the lock, in ms. */
  readonly heldMs: number
}

import type { AppChatRef } from '../shared/chat-ref.ts'

/**
 * Removes old data and the data of a principal. Every method is atomic and does a bounded amount of work. Any number of
 * processes may call them at the same time.
 */
export interface RetentionStore {
  /** Lists chats that were not used for `unusedMs` and that `removeChat` would remove, the oldest first. */
  listUnused(filter: UnusedChats): Promise<AppChatRef[]>
  /**
   * Removes the session, the entry in the chat list, the browser calls and the expired locks of a chat. Returns false, and
   * removes nothing, if a worker with a valid lease has locked the chat or its live session, if a call of the chat is pending, approved or
   * running, if an outcome is not reported, or if the chat was used within `unusedMs`.
   */
  removeChat(chat: AppChatRef, condition: RemovalCondition): Promise<boolean>
  /** Counts the audit entries of all applications at the beginning of the record that are older than `olderThanMs`. */
  countOldAudit(olderThanMs: number): Promise<number>
  /**
   * Removes up to `limit` audit entries at the beginning of the record that are older than `olderThanMs`. Appends an entry
   * that records the removal, so that `verifyAudit` can check the rest. Returns the number of removed entries.
   */
  removeAudit(range: { readonly olderThanMs: number; readonly limit: number }): Promise<number>
  /**
   * Reads a page of the entries in the chat list of an app, by principal and chat id. Returns those whose chat has no session and
   * no lock: it was deleted while an entry was written. Stores without this method keep such entries.
   */
  listOrphans?(page: OrphanPage): Promise<Orphans>
  /** Removes the entry of a chat that still has no session and no lock. */
  removeOrphan?(chat: AppChatRef): Promise<void>
  /** Removes up to `limit` ended and reported approvals without audit entries. Returns their number. */
  removeApprovals(limit: number): Promise<number>
  /**
   * Called after a series of removals. Overwrites copies of what was removed, for databases that keep any. This may take long, so it
   * is not part of each removal.
   */
  overwriteRemoved?(): Promise<void>
  /** Removes the chat locks of workers that have not renewed their lease for a day. */
  removeLocks(): Promise<void>
  /** Removes the `user:` state of a principal, and the entries in the chat list and browser calls of all their chats. */
  removeOwner(owner: Owner): Promise<void>
  /**
   * Removes up to `limit` ended approvals in chats of a principal and the contents of their audit entries. The hashes of the
   * entries stay, and an appended entry records the removal, so that `verifyAudit` can check the record. Returns the number
   * of removed approvals.
   */
  eraseApprovals(owner: Owner, limit: number): Promise<number>
}

/** A principal of an application. */
export type Owner = Omit<AppChatRef, 'chatId'>

/** When {@link RetentionStore.removeChat} may remove a chat. */
export interface RemovalCondition {
  /** The lease of the workers that lock chats, in ms. */
  readonly leaseMs: number
  /** For how long the chat must not have been used, in ms. Default: it may have been used just now. */
  readonly unusedMs?: number
}

/** The chats that {@link RetentionStore.listUnused} lists. */
export interface UnusedChats extends Required<RemovalCondition> {
  /** Default: all applications of the store. */
  readonly appName?: string
  readonly limit: number
}

/** A page of {@link RetentionStore.listOrphans}. */
export interface OrphanPage {
  readonly appName: string
  /** The last entry of the page before. */
  readonly after: Omit<AppChatRef, 'appName'> | undefined
  /** How many entries are read. */
  readonly limit: number
}

/** What {@link RetentionStore.listOrphans} found. */
export interface Orphans {
  readonly orphans: readonly AppChatRef[]
  /** The last entry that was read. Undefined if the page was not full. */
  readonly last: AppChatRef | undefined
}

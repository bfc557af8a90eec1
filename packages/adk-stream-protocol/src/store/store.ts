import type { BaseSessionService, CompositeSessionKey, Event, Session } from '@google/adk'

import type { FeatureParts } from './features.ts'
import type { Owner } from './keys.ts'
import type { ApprovalStore } from '../approvals/approval-store.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'

/**
 * The database of a bridge. `openSqliteStore` opens one in a SQLite file, `openPostgresStore` one in a PostgreSQL database. Implement
 * this interface to use another database: `adk-stream-protocol/store/contract` has the types of its parts, and the tests that it must
 * pass.
 */
export interface Store extends FeatureParts, AsyncDisposable {
  readonly sessions: RewindableSessionService
  readonly approvals: ApprovalStore
  readonly chats: ChatStore
  /** Removes old data. Without it, the bridge rejects the option `retention` and `deletePrincipal`. */
  readonly retention?: RetentionStore
  /** Returns a random 32-byte secret. The first call with a name creates it. Later calls, in any process, return the same one. */
  secret(name: string): Promise<Buffer>
  /** Returns the state of the connection pools, for metrics, and how long work has waited for connections. For stores that have any. */
  poolStats?(): {
    readonly used: number
    readonly idle: number
    readonly waiting: number
    readonly waitedMs?: number
  }
  /** Closes the store. Later calls fail with the code `closed`. */
  close(): Promise<void>
}

/** Names the first event that {@link RewindableSessionService.rewind} removes. */
export interface RewindRequest {
  readonly appName: string
  readonly userId: string
  readonly sessionId: string
  /** The first event to remove. */
  readonly eventId: string
  /** The ids of later events to keep. Default: none. */
  readonly keep?: readonly string[]
}

/**
 * An ADK session service that can remove the end of a conversation. The bridge needs it to regenerate a reply and to
 * edit a message.
 */
export interface RewindableSessionService extends BaseSessionService {
  /**
   * Removes an event and all later ones except those in `keep`. The session state becomes the result of the remaining
   * events. `app:` and `user:` state does not change.
   */
  rewind(request: RewindRequest): Promise<void>
}

/** A session service that can return the first message of a conversation without reading the whole conversation. */
export interface FirstMessageReader {
  /** Returns the first user event with text or a file. Returns undefined if there is none. */
  readFirstMessage(request: CompositeSessionKey): Promise<Event | undefined>
}

/** A session service that reads a session in the step in which its chat is locked, if the lock says `reads`. */
export interface LockedSessionReader {
  /** Returns the session as it was when this process locked its chat, once. Afterwards, like `getSession`. */
  getLockedSession(request: CompositeSessionKey): Promise<Session | undefined>
  /**
   * The same, and creates the session if it does not exist. A store MAY store a new session with its first event. If the lock is
   * released before, the session does not exist.
   */
  getOrCreateLockedSession(request: CompositeSessionKey): Promise<Session>
}

/** A session service that can say which sessions have changed without reading them. */
export interface ChangeTagReader {
  /** Returns a number that is another one after a change by another process. */
  readChangeCount(): Promise<number>
  /** Returns, for each user, a tag of each session. A tag is another one after any change of the session's events. */
  readChangeTags(request: {
    readonly appName: string
    readonly userIds: readonly string[]
  }): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>>
}

/** Returns a part that not every store has. Throws if it is missing. `user`: what needs it, with its verb. */
export function requirePart<Name extends keyof FeatureParts>(
  store: Store,
  name: Name,
  user: string,
): NonNullable<Store[Name]> {
  const part = store[name]
  if (part) return part
  throw new TypeError(
    `createBridge: ${user} a store with \`${name}\`. Those of openSqliteStore and openPostgresStore have it.`,
  )
}

/** Whether a session service implements {@link ChangeTagReader}. */
export function canReadChangeTags(service: object): service is ChangeTagReader {
  return 'readChangeTags' in service && typeof service.readChangeTags === 'function'
}

/** Whether a session service implements {@link LockedSessionReader}. */
export function canReadLocked(service: object): service is LockedSessionReader {
  return 'getLockedSession' in service && typeof service.getLockedSession === 'function'
}

/** Whether a session service implements {@link FirstMessageReader}. */
export function canReadFirstMessage(service: object): service is FirstMessageReader {
  return 'readFirstMessage' in service && typeof service.readFirstMessage === 'function'
}

/** Whether a session service implements {@link RewindableSessionService}. */
export function isRewindable(service: BaseSessionService): service is RewindableSessionService {
  return 'rewind' in service && typeof service.rewind === 'function'
}

/** The title and the creation time of a chat, derived from its first message. */
export interface ChatNote {
  /** The beginning of the first message. */
  readonly title: string
  /** When the first message was sent, in ms since 1970. */
  readonly createdAt: number
}

/** An entry of the chat list: the derived title, the name that the owner chose, and the agent if the bridge has several. */
export type ChatEntry = Partial<ChatNote> & { readonly name?: string; readonly agent?: string }

/** Stores what the chat list shows, so that a session is read for it only once. */
export interface ChatStore {
  /** Returns the entries of these chats of a principal, by chat id. Chats without an entry are missing from the map. */
  find(
    owner: Omit<AppChatRef, 'chatId'>,
    chatIds: readonly string[],
  ): Promise<Map<string, ChatEntry>>
  /** Stores the title and the creation time of a chat. */
  note(chat: AppChatRef, note: ChatNote): Promise<void>
  /** Sets the name of a chat. The name stays when the chat is cleared. */
  rename(chat: AppChatRef, name: string): Promise<void>
  /** Sets the agent of a chat if it has none. Returns the agent of the chat. */
  assignAgent(chat: AppChatRef, agent: string): Promise<string>
  /** Removes the title and the creation time, because the first message was replaced. Name and agent stay. */
  forgetNote(chat: AppChatRef): Promise<void>
  drop(chat: AppChatRef): Promise<void>
}

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

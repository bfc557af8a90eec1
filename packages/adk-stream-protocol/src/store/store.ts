import type { BaseSessionService, CompositeSessionKey, Event, Session } from '@google/adk'
import type { ApprovalStore } from '../approvals/approval-store.ts'
import type { Relay, Signals } from '../relay/relay.ts'
import type { ChatStore } from './chat-store.ts'
import type { BrowserCallStore } from './browser-call-store.ts'
import type { CredentialStore } from './credential-store.ts'
import type { LiveSessionStore } from './live-session-store.ts'
import type { RetentionStore } from './retention-store.ts'

/**
 * The database of a bridge. `openSqliteStore` opens one in a SQLite file. Implement this interface to use
 * another database.
 */
export interface Store extends AsyncDisposable {
  readonly sessions: RewindableSessionService
  readonly approvals: ApprovalStore
  readonly browserCalls: BrowserCallStore
  readonly chats: ChatStore
  /** Makes running turns readable on every server. Without it, a turn can be read and stopped only on the server that runs it. */
  readonly relay?: Relay
  /** Signals between the processes of a store without a relay. Without both, a live session does not move to another process. */
  readonly signals?: Signals
  /** The state of live sessions. Without it, a live session that moves is restored from its messages. */
  readonly liveSessions?: LiveSessionStore
  /** Encrypted credentials of people who signed in. Without it, the bridge rejects the option `signIn`. */
  readonly credentials?: CredentialStore
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

import type { BaseSessionService, CompositeSessionKey, Event } from '@google/adk'
import type { ApprovalStore } from '../approvals/approval-store.ts'
import type { ChatStore } from './chat-store.ts'
import type { BrowserCallStore } from './browser-call-store.ts'

/** What the bridge needs from a database; SQLite and PostgreSQL give the same. */
export interface Store extends AsyncDisposable {
  readonly sessions: RewindableSessionService
  readonly approvals: ApprovalStore
  readonly browserCalls: BrowserCallStore
  readonly chats: ChatStore
  /** A random 32-byte secret, created at the first call with this name and kept for the life of the database. */
  secret(name: string): Promise<Buffer>
  /** Releases the database for good; every later call is refused with the code `closed`. */
  close(): Promise<void>
}

/** Which event of which session is taken back, with all after it. */
export interface RewindRequest {
  readonly appName: string
  readonly userId: string
  readonly sessionId: string
  /** The first event to remove. */
  readonly eventId: string
  /** Events after it that stay, by id. Default: none. */
  readonly keep?: readonly string[]
}

/** An ADK session service that can take back the end of a conversation, for regenerate and edit-and-resend. */
export interface RewindableSessionService extends BaseSessionService {
  /** Removes an event and all after it but those of `keep`; session state becomes what the events that are left made, `app:` and `user:` state stays. */
  rewind(request: RewindRequest): Promise<void>
}

/** A session service that can tell how a conversation began without reading all of it. */
export interface FirstMessageReader {
  /** The first event in which the user says something that can be read; nothing while there is none. */
  readFirstMessage(request: CompositeSessionKey): Promise<Event | undefined>
}

/** Tells whether a session service offers `readFirstMessage`. */
export function canReadFirstMessage(service: object): service is FirstMessageReader {
  return 'readFirstMessage' in service && typeof service.readFirstMessage === 'function'
}

/** Tells whether a session service, ours or a foreign one, offers `rewind`. */
export function isRewindable(service: BaseSessionService): service is RewindableSessionService {
  return 'rewind' in service && typeof service.rewind === 'function'
}

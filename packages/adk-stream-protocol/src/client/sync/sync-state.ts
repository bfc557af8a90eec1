import type { Chunk } from '../../protocol/chunk.ts'
import type { Message } from '../../protocol/message.ts'
import type { WatchEvent } from '../api/watch-feed.ts'
import type { StreamEnd } from '../connection/turn-progress.ts'
import type { ResponseChannel, StoredConversation } from '../connection/transport.ts'
import type {
  AttachableChat,
  Decision,
  IdleWait,
  OriginalMethods,
  ToolOutput,
} from './attachable-chat.ts'
import type { MessageView } from '../connection/chat-messages.ts'
import type {
  DecisionSupplement,
  ResponseState,
  ResponseStateMap,
} from '../connection/response-states.ts'

/** What the reducer reads of the chat and its transport, at the time of the event. */
export interface ChatView {
  readonly messages: MessageView[]
  /** Whether the AI SDK is sending a request or reading the response to it. */
  readonly isBusy: boolean
  readonly hasFailed: boolean
  /** Whether the failed request may have replaced a message, and the person can send it again. */
  readonly keepsEdit?: boolean
  /** Whether the chat reads a stream and the transport can send responses meanwhile. */
  readonly hasOpenStream: boolean
  readonly responses: ResponseStateMap
}

/** The stored messages that a page shows: those up to a position. */
export interface StoredBase {
  readonly position: string
  /** In the order of the server. */
  readonly ids: ReadonlySet<string>
}

/** How a chat comes to show what is stored. `isDue`: once more after this, or when the chat is idle. */
type CatchUp =
  | { readonly state: 'current'; readonly isDue: boolean }
  /** Waits for the stored conversation. `shown`: the messages when it was requested. */
  | { readonly state: 'loading'; readonly shown: readonly MessageView[]; readonly isDue: boolean }
  /** Reads a running turn to its end. */
  | { readonly state: 'reading'; readonly isDue: boolean }
  /** No turn could be read although the server reported one. Loads once more, in case it has ended meanwhile. */
  | { readonly state: 'checking'; readonly shown: readonly MessageView[]; readonly isDue: boolean }

/** What the feed of a chat has reported last. */
interface News {
  readonly position?: string | undefined
  /** A turn that has started, until it is read. */
  readonly turn?: string
}

/** The newest stream of the chat's own requests. */
interface OwnStream {
  /** How it ended, until the AI SDK is idle. `refused`: the request was rejected. */
  readonly end: 'none' | 'ended' | 'refused'
  /** The message that it writes. */
  readonly messageId?: string
  /** Whether it adds a new message to the chat, replays one that the chat may have shown before, or continues one. */
  readonly writes?: 'new' | 'replay' | 'rest'
  readonly read?: StreamEnd
  /** The user message of its request, which may have failed. A server that has the message removes it before storing it again. */
  readonly sends?: string | undefined
}

/** Turns that are written into the messages without a request of the chat. */
interface ShownTurns {
  readonly messageIds: ReadonlySet<string>
  /** The newest reply to speech. The transcript of the speech arrives after the reply has started. */
  readonly spokenReplyId?: string | undefined
}

/** A response of this page that the server has not confirmed, or whose outcome no stream has reported. */
export type Unconfirmed =
  /** The next request sends it. While a stream is replayed, the messages may lack it, or even its approval. */
  | { readonly state: 'queued'; readonly effect: QueueEffect }
  /** An output that the running request has sent. The server has it if the turn does not fail. */
  | { readonly state: 'requested'; readonly output: ToolOutput }
  /** An output to send again, outside requests. */
  | { readonly state: 'unsent'; readonly output: ToolOutput }
  /** An output that was sent while a stream was open. */
  | { readonly state: 'unreported' }

export interface AttachedSync {
  readonly state: 'attached'
  /** Undefined until the stored conversation was loaded. */
  readonly base: StoredBase | undefined
  /** Undefined without a feed. */
  readonly news: News | undefined
  readonly catchUp: CatchUp
  readonly stream: OwnStream
  readonly shown: ShownTurns
  /** By the id of the approval or of the call. */
  readonly outbox: ReadonlyMap<string, Unconfirmed>
  readonly retry: { readonly isScheduled: boolean; readonly delayMs: number }
}

export type SyncState = AttachedSync | { readonly state: 'detached' }

/** Ids of the responses that were refused, and why. */
export interface Refusal {
  readonly ids: readonly string[]
  readonly error: unknown
  /** Whether the error is reported to `onError`: no request of the chat failed with it. */
  readonly isUnreported: boolean
}

/** Something that happens in an attached chat. */
export type SyncEvent =
  /** A chunk that the chat is about to read. `shown`: of a turn that the chat did not request. */
  | {
      readonly type: 'chunk'
      readonly chunk: Chunk
      readonly source: 'requested' | 'resumed' | 'shown'
    }
  | { readonly type: 'stream-ended'; readonly read: StreamEnd }
  /** The chat is about to send a user message, perhaps once more: changed, or for another reply. */
  | { readonly type: 'message-sent'; readonly id: string | undefined }
  /** The AI SDK has read a stream to its end and has not started another request. */
  | { readonly type: 'chat-idle' }
  | { readonly type: 'turn-shown'; readonly messageId: string; readonly isSpokenReply: boolean }
  | { readonly type: 'shown-turn-ended'; readonly messageId: string }
  | {
      readonly type: 'user-message'
      readonly message: Message
      readonly source: 'written' | 'spoken'
    }
  | {
      readonly type: 'decision-given'
      readonly decision: Decision
      readonly supplement?: DecisionSupplement | undefined
    }
  | { readonly type: 'output-given'; readonly output: ToolOutput }
  /** The chat shows a response that the next request sends. */
  | { readonly type: 'response-queued'; readonly id: string }
  /** The server has a response that was sent while a stream was open. */
  | { readonly type: 'decision-acknowledged'; readonly id: string; readonly approval: string }
  | { readonly type: 'output-acknowledged'; readonly id: string }
  | ({ readonly type: 'responses-refused' } & Refusal)
  /** The stored messages were loaded after a refusal, or could not be. */
  | ({
      readonly type: 'refusal-checked'
      readonly known: readonly string[]
      /** Whether a turn is running, which the stored messages leave out. */
      readonly isRunning: boolean
    } & Refusal)
  | { readonly type: 'output-failed'; readonly output: ToolOutput; readonly error: unknown }
  | { readonly type: 'retry-due' }
  | { readonly type: 'connection-opened' }
  | { readonly type: 'feed-started' }
  | { readonly type: 'feed-event'; readonly event: WatchEvent }
  /** The stored conversation, loaded for `catchUp`. Undefined if there is no way to load it. */
  | { readonly type: 'loaded'; readonly loaded: StoredConversation | undefined }
  | { readonly type: 'catch-up-failed'; readonly error: unknown }
  /** The stored conversation, loaded for any other reason. `shown`: the messages when it was requested, if the chat has requested it. */
  | {
      readonly type: 'reloaded'
      readonly loaded: StoredConversation
      readonly shown?: readonly MessageView[]
    }
  /** The server has handled the stop of a reply, which may have ended before (CL916). */
  | { readonly type: 'stopped' }
  /** The last message was marked as stopped, or a user message as one that may not have been sent. */
  | { readonly type: 'marked' }
  /** A turn was read to its end, or none was running. */
  | { readonly type: 'turn-read'; readonly wasRunning: boolean }
  | { readonly type: 'detached' }

export type SyncEffect =
  | { readonly type: 'set-messages'; readonly messages: MessageView[] }
  /** Shows a decision that the server reported. */
  | { readonly type: 'show-decision'; readonly decision: Decision }
  | QueueEffect
  /** Shows a decision in the chat, then sends it while the stream stays open. */
  | {
      readonly type: 'send-decision'
      readonly decision: Decision
      readonly supplement: DecisionSupplement | undefined
    }
  | { readonly type: 'send-output'; readonly output: ToolOutput; readonly isShown: boolean }
  /** Sends the queued responses of a message in a request. */
  | { readonly type: 'send-responses'; readonly messageId: string }
  | { readonly type: 'push-chunk'; readonly chunk: Chunk }
  | { readonly type: 'mark'; readonly ids: readonly string[]; readonly response: ResponseState }
  | { readonly type: 'forget'; readonly id: string }
  | {
      readonly type: 'supplement'
      readonly decision: Decision
      readonly supplement: DecisionSupplement | undefined
    }
  /** Loads what is stored after a position. */
  | { readonly type: 'load'; readonly after: string | undefined }
  | { readonly type: 'check-refusal'; readonly refusal: Refusal }
  /** Lets the AI SDK read the running turn. */
  | { readonly type: 'resume' }
  /** Reads the running turn into a message that is not the last one. */
  | { readonly type: 'read-turn'; readonly messageId: string }
  | { readonly type: 'schedule-retry'; readonly delayMs: number }
  | { readonly type: 'cancel-retry' }
  | { readonly type: 'report-refusal'; readonly ids: readonly string[]; readonly error: unknown }
  | { readonly type: 'report-error'; readonly error: unknown }
  /** Calls of the chat may have changed. */
  | { readonly type: 'notify' }

/** Shows a response in the chat. The next request sends it. */
export type QueueEffect =
  | { readonly type: 'queue-decision'; readonly decision: Decision }
  | { readonly type: 'queue-output'; readonly output: ToolOutput }

/** What the functions that run effects need. */
export interface SyncContext {
  readonly chat: AttachableChat
  readonly channel: ResponseChannel
  /** The methods of the chat before it was attached. */
  readonly original: OriginalMethods
  readonly idle: IdleWait
  /** CL1991: what the application passed with the newest message, or with the newest request for another reply. */
  readonly newestRequest: { options?: unknown }
  readonly state: () => SyncState
  /** Passes an event to `nextSync`, and runs the effects that it returns. Returns a promise if the caller has to wait for one of them. */
  readonly dispatch: (event: SyncEvent) => Promise<void> | undefined
  /** Loads what is stored, after a position. Resolves with undefined if there is no way to load it. */
  readonly load: (after?: string) => Promise<StoredConversation | undefined>
  readonly canLoad: () => boolean
  readonly reportError: (error: unknown) => undefined
}

/** The state after an event, and the effects to run. */
export type Step = readonly [state: SyncState, effects: readonly SyncEffect[]]
export type AttachedStep = readonly [state: AttachedSync, effects: readonly SyncEffect[]]

export const NONE: ReadonlySet<string> = new Set()

export const NOTIFY = { type: 'notify' } as const
export const CANCEL_RETRY = { type: 'cancel-retry' } as const

export function mark(response: ResponseState, ...ids: readonly string[]): SyncEffect {
  return { type: 'mark', ids, response }
}

/** Returns the chat as it is after `mark`. */
export function withMark(
  chat: ChatView,
  response: ResponseState,
  ...ids: readonly string[]
): ChatView {
  const marked = ids.map((id) => [id, response] as const)
  return { ...chat, responses: new Map([...chat.responses, ...marked]) }
}

export function forget(id: string): SyncEffect {
  return { type: 'forget', id }
}

export function setMessages(messages: MessageView[]): SyncEffect {
  return { type: 'set-messages', messages }
}

export function reportError(error: unknown): SyncEffect {
  return { type: 'report-error', error }
}

/** Puts effects before those of a step. */
export function withEffects(effects: readonly SyncEffect[], [state, more]: Step): Step {
  return [state, [...effects, ...more]]
}

export function withId(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return new Set([...ids, id])
}

export function withoutId(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return new Set([...ids].filter((each) => each !== id))
}

export function withoutKey<Value>(
  map: ReadonlyMap<string, Value>,
  key: string,
): ReadonlyMap<string, Value> {
  return new Map([...map].filter(([each]) => each !== key))
}

/** The first delay before something is tried again, and the longest, in ms. */
const [FIRST_RETRY_MS, MAX_RETRY_MS] = [500, 30_000]

export const START_RETRY: AttachedSync['retry'] = { isScheduled: false, delayMs: FIRST_RETRY_MS }

export function scheduleRetry(state: AttachedSync): AttachedStep {
  const { delayMs } = state.retry
  const retry = { isScheduled: true, delayMs: Math.min(MAX_RETRY_MS, delayMs * 2) }
  return [{ ...state, retry }, [{ type: 'schedule-retry', delayMs }]]
}

export function resetDelay(retry: AttachedSync['retry']): AttachedSync['retry'] {
  return { ...retry, delayMs: FIRST_RETRY_MS }
}

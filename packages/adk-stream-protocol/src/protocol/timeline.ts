import type { Guard } from './guards.ts'
import {
  isArrayOf,
  isBoolean,
  isNumber,
  isObjectOf,
  isOneOf,
  isRecord,
  isString,
  optional,
} from './guards.ts'
import type { Usage } from './message.ts'

/** What happened in a chat, on one time axis. Times are in ms since 1970. `GET /chats/:chatId/timeline` returns it. */
export interface Timeline {
  readonly chatId: string
  /** The time of the store. Deadlines use it. */
  readonly now: number
  /** Whether a reply is being written, on any server. */
  readonly running: boolean
  /** What happened in the turns of this page, in the order of the start. */
  readonly entries: readonly TimelineEntry[]
  /** What the chat waits for, most important first. Empty if it waits for a message. */
  readonly waits: readonly TimelineWait[]
  /** Says in one English sentence why the chat waits, and what would continue it. */
  readonly why: string
  /** Pass it as `before` to read earlier turns. Undefined on the last page. */
  readonly next?: string | undefined
  /** The principal who reads, to tell their votes from those of others. Undefined for the application. */
  readonly reader?: string | undefined
  /** The session state that clients may see. Only for the owner of the chat. */
  readonly state?: Record<string, unknown> | undefined
}

/** What every entry of a timeline has. */
interface Entry {
  /** The id of the entry, the same in every response. */
  readonly id: string
  /** The assistant message of the turn. */
  readonly messageId: string
  readonly at: number
  /** When it ended. Undefined if it has not ended, or if it is a moment. */
  readonly endedAt?: number | undefined
}

/** A person's approval that is not yet enough, or was withdrawn. */
export interface TimelineVote {
  readonly by: string
  readonly at: number
  readonly withdrawnAt?: number | undefined
}

/** How a call that needed approval was decided. */
export interface TimelineDecision {
  readonly state: 'approved' | 'denied' | 'expired' | 'cancelled'
  readonly at: number
  readonly by?: string | undefined
  readonly reason?: string | undefined
}

/** A tool call. Long arguments are shortened. */
export interface TimelineCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly args: Record<string, unknown>
}

/** An entry of a timeline. `type` determines its other fields. */
export type TimelineEntry =
  | MessageEntry
  | TurnEntry
  | ModelEntry
  | ToolEntry
  | BrowserToolEntry
  | ApprovalEntry
  | ErrorEntry
  | InterruptionEntry
  | HandOverEntry

/** A message of the user. Only the owner of the chat sees `text`. */
interface MessageEntry extends Entry {
  readonly type: 'message'
  readonly text?: string | undefined
}

/** A turn. `endedAt` is undefined while it runs or waits. */
interface TurnEntry extends Entry {
  readonly type: 'turn'
  readonly state: 'running' | 'waiting' | 'completed' | 'stopped' | 'failed'
  readonly usage?: Usage | undefined
}

/** A call of the model. */
export interface ModelEntry extends Entry {
  readonly type: 'model'
  readonly agent?: string | undefined
  readonly model?: string | undefined
  /** When its first output arrived. */
  readonly firstAt?: number | undefined
  readonly usage?: Usage | undefined
  /** The id of its recorded request and reply, if the bridge records them. Pass it to `readModelCall`. */
  readonly callId?: string | undefined
}

/** A tool that ran on the server, or a long-running call that the application completes. */
interface ToolEntry extends Entry, TimelineCall {
  readonly type: 'tool'
  readonly state: ToolState
}

/** How a timeline names a tool that runs in a client, and the client that gets its call. */
export const CLIENT_ENTRY = { tool: 'browser-tool', to: 'browser' } as const

/** A tool that runs in the browser. */
interface BrowserToolEntry extends Entry, TimelineCall {
  readonly type: typeof CLIENT_ENTRY.tool
  readonly state: ToolState
}

export type AnyToolEntry = ToolEntry | BrowserToolEntry

export function isToolEntry(entry: TimelineEntry): entry is AnyToolEntry {
  return entry.type === 'tool' || entry.type === CLIENT_ENTRY.tool
}

/**
 * The state of a tool that runs or has run. `unknown`: its server stopped before it recorded the result.
 *
 * @inline
 */
type ToolState = 'running' | 'succeeded' | 'failed' | 'unknown'

/** The wait for an approval. `endedAt` is the time of the decision. */
export interface ApprovalEntry extends Entry, TimelineCall {
  readonly type: 'approval'
  readonly approvalId: string
  readonly title?: string | undefined
  /** The state of the approval, such as `requested` or `succeeded`. */
  readonly state: string
  readonly deadline?: number | undefined
  readonly given: number
  readonly needed: number
  readonly votes: readonly TimelineVote[]
  readonly decision?: TimelineDecision | undefined
  /** When the call started, and when it ended. */
  readonly startedAt?: number | undefined
  readonly finishedAt?: number | undefined
}

/** An error that ended a turn. */
interface ErrorEntry extends Entry {
  readonly type: 'error'
  readonly code: string
  readonly message: string
}

/** The reply was stopped, or a person spoke while the model spoke. */
interface InterruptionEntry extends Entry {
  readonly type: 'interruption'
}

/** Another agent continues (`agent`), the browser runs an approved call, or another server has recovered a call. */
interface HandOverEntry extends Entry {
  readonly type: 'hand-over'
  readonly to: 'agent' | 'browser' | 'server'
  readonly name?: string | undefined
  readonly toolCallId?: string | undefined
}

/**
 * What the model was asked and replied, without secrets and shortened. Only bridges in development record it.
 *
 * @inline
 */
export interface ModelCall {
  readonly id: string
  readonly agent: string
  readonly startedAt: number
  /** The request as ADK passes it to the model: its name, the instructions and tools, and the contents. */
  readonly request: Record<string, unknown>
  /** The responses of the model, or its error. A streamed text is one response. */
  readonly replies: readonly Record<string, unknown>[]
}

export const isModelCall = isObjectOf<ModelCall>({
  id: isString,
  agent: isString,
  startedAt: isNumber,
  request: isRecord,
  replies: isArrayOf(isRecord),
})

/** Something that a chat waits for. `for` determines its other fields. */
export type TimelineWait = ApprovalWait | CallWait | ModelWait

/** People must approve a call. */
interface ApprovalWait extends TimelineCall {
  readonly for: 'approval'
  readonly messageId: string
  readonly approvalId: string
  readonly title?: string | undefined
  readonly since: number
  readonly deadline: number
  readonly given: number
  readonly needed: number
  /** The ids of principals and the roles that may approve now. */
  readonly approvers: {
    readonly principals: readonly string[]
    readonly roles: readonly string[]
  }
  /** The principals who have approved. */
  readonly approvedBy: readonly string[]
  /** Whether the reader may approve now. */
  readonly byReader: boolean
  /** Whether the reader has approved. */
  readonly votedByReader: boolean
}

/**
 * A call that has not ended. `start`: approved, and no server has started it yet. `tool`: it runs on a server. `browser`: a page must
 * run it. `application`: a long-running call that the application completes.
 */
interface CallWait extends TimelineCall {
  readonly for: 'start' | 'tool' | 'browser' | 'application'
  readonly messageId: string
  readonly since: number
}

/** The model has not finished its reply. */
interface ModelWait {
  readonly for: 'model'
  readonly messageId: string
  readonly since: number
}

const isTimelineEntry = isObjectOf<Pick<TimelineEntry, 'id' | 'type' | 'messageId' | 'at'>>({
  id: isString,
  type: isOneOf(
    'message',
    'turn',
    'model',
    'tool',
    CLIENT_ENTRY.tool,
    'approval',
    'error',
    'interruption',
    'hand-over',
  ),
  messageId: isString,
  at: isNumber,
})

const isTimelineWait = isObjectOf<Pick<TimelineWait, 'for' | 'messageId' | 'since'>>({
  for: isOneOf('approval', 'start', 'tool', 'browser', 'application', 'model'),
  messageId: isString,
  since: isNumber,
})

// The guard checks what a page relies on to sort and select entries.
export const isTimeline = isObjectOf({
  chatId: isString,
  now: isNumber,
  running: isBoolean,
  entries: isArrayOf(isTimelineEntry),
  waits: isArrayOf(isTimelineWait),
  why: isString,
  next: optional(isString),
  reader: optional(isString),
  state: optional(isRecord),
}) as unknown as Guard<Timeline>

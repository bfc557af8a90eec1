import type { AuditRecord } from '../../../src/approvals/audit-entry.ts'
import type { Effect } from '../../faults/support/payment-server.ts'
import type { ChatMessage } from '../../support/chat-probe.ts'

/** Everything that a run has recorded. All times are in ms of the machine's clock. */
export interface ChaosHistory {
  /** The lease of the servers. */
  readonly leaseMs: number
  readonly faults: RecordedFault[]
  readonly turns: RecordedTurn[]
  readonly decisions: RecordedDecision[]
  /** The runs of browser tools. */
  readonly runs: RecordedRun[]
  /** What the tools did. */
  effects: readonly Effect[]
  audit: readonly AuditRecord[]
  /** The stored messages of each chat, as each server returns them at the end. */
  chats: ReadonlyMap<string, readonly (readonly ChatMessage[])[]>
  /** What went wrong outside the histories, such as a server that crashed by itself. */
  readonly problems: string[]
}

export const SERVER_FAULTS = [
  'kill',
  'terminate',
  'pause',
  'cut',
  'lose-answers',
  'drop-all',
] as const
/** `away`: no server reaches the database for one and a half leases, and each one does again at another moment. */
export const DATABASE_FAULTS = [
  'restart-fast',
  'restart-immediate',
  'end-connections',
  'away',
] as const

/** The faults of servers on a SQLite file. `lock`: another process has locked the file. */
export const SQLITE_FAULTS = ['kill', 'terminate', 'pause', 'lock'] as const

export type ServerFault = (typeof SERVER_FAULTS)[number]
export type DatabaseFault = (typeof DATABASE_FAULTS)[number] | 'lock'
export type FaultKind = ServerFault | DatabaseFault

export interface RecordedFault {
  /** A stall is no fault of the run: the machine did not let a server run for long. */
  readonly kind: FaultKind | 'stall'
  /** The server. Undefined for a fault of the database. */
  readonly server?: string
  readonly from: number
  to: number
}

export const BROWSER_KINDS = ['locate', 'select', 'late'] as const
/** `hurry` has a short deadline. */
export const PAYMENT_KINDS = ['pay', 'top_up', 'hurry'] as const
/** `ask`: the model asks the person a question. */
export type TurnKind =
  | 'talk'
  | 'stop'
  | 'ask'
  | (typeof PAYMENT_KINDS)[number]
  | (typeof BROWSER_KINDS)[number]

export function isBrowserKind(name: string): name is (typeof BROWSER_KINDS)[number] {
  return BROWSER_KINDS.some((kind) => kind === name)
}

/** A run of a browser tool in a tab. */
export interface RecordedRun {
  readonly chatId: string
  /** The number of the turn with the call. */
  readonly id: number
  /** Its result contains this name. */
  readonly name: string
  readonly from: number
  /** A reply that is generated again has another call. */
  toolCallId?: string
  /** When its tab was closed. Undefined if it was not. */
  closedAt?: number
  /** Whether the tab knew, when it was closed, that the server had the result. */
  isAcknowledged?: boolean
}

/** A message of a client, and what came of it. */
export interface RecordedTurn {
  readonly chatId: string
  /** The server chooses the id of a spoken message. */
  userMessageId: string
  readonly kind: TurnKind
  /** The whole text of the reply. */
  readonly expected: string
  readonly from: number
  to: number
  /** The longest text that the client has seen. */
  seen: string
  /** The message with that text. A client that resumes may read an earlier message that a server continues. */
  seenIn?: string
  /** Whether the client asked to stop the turn, or interrupted it. */
  stops: boolean
  /** The text of a spoken message, and when the person had said it. */
  readonly spoken?: { readonly text: string; until: number }
  /** Whether the person tried again after an error. The reply may then be replaced, with calls that had no effect. */
  isRetried?: boolean
  /** Whether the model may say anything: it heard audio, even silence, while the turn waited for a decision. */
  hasFreeText?: boolean
  /** Whether the person had a fault of the network or closed a tab meanwhile. */
  isDisturbed?: boolean
  /** The message as the client has it from the stream, if it read a stream to its end. */
  read?: ChatMessage
  approvalId?: string
  /** Why the client could not go on. */
  fault?: string
}

/** Records a message that a client is about to send. */
export function recordTurn(
  { turns }: Pick<ChaosHistory, 'turns'>,
  message: Pick<RecordedTurn, 'chatId' | 'userMessageId' | 'kind' | 'expected' | 'spoken'>,
): RecordedTurn {
  const turn = { ...message, from: Date.now(), to: Infinity, seen: '', stops: false }
  turns.push(turn)
  return turn
}

export interface RecordedDecision {
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string
  /** Edited arguments. */
  readonly args?: Readonly<Record<string, unknown>>
  /** The answer to a question. */
  readonly payload?: unknown
  /** `unknown`: the client got no answer, or one that does not say whether the decision counted. */
  readonly result: 'accepted' | 'refused' | 'unknown'
}

export function emptyHistory(leaseMs: number): ChaosHistory {
  return {
    leaseMs,
    faults: [],
    turns: [],
    decisions: [],
    runs: [],
    effects: [],
    audit: [],
    chats: new Map(),
    problems: [],
  }
}

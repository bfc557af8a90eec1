import type { ChatSummary } from './chat-summary.ts'
import { isChatSummary } from './chat-summary.ts'
import type { Guard } from './guards.ts'
import {
  isAnything,
  isArrayOf,
  isBoolean,
  isNumber,
  isObjectOf,
  isOneOf,
  isRecord,
  isString,
  optional,
} from './guards.ts'

/** What the server tells over HTTP, as a client reads it; times in ms since 1970. */

/** An approval as somebody may see it who may know of it. */
export interface PendingApproval {
  readonly id: string
  readonly state: string
  readonly toolName: string
  readonly args: Record<string, unknown>
  readonly hint?: string | undefined
  readonly title?: string | undefined
  readonly severity?: 'low' | 'medium' | 'high' | undefined
  readonly icon?: string | undefined
  readonly payload?: unknown
  readonly requestedAt: number
  readonly deadline: number
  readonly approvals: { readonly given: number; readonly needed: number }
  /** Whether this person is among those who have approved. */
  readonly voted: boolean
  /** Counts the changes of the approval. */
  readonly version?: number | undefined
  readonly step: number
  readonly reason?: string | undefined
  readonly editedArgs?: Record<string, unknown> | undefined
  /** What the approver answered to the tool's `payload`. */
  readonly approvedPayload?: unknown
  /** Where the call was made, for the chat's owner alone. */
  readonly chatId?: string | undefined
  readonly messageId?: string | undefined
  readonly toolCallId?: string | undefined
  /** Whether it was asked in a chat of this person. */
  readonly own: boolean
}

const isPendingApproval = isObjectOf<PendingApproval>({
  id: isString,
  state: isString,
  toolName: isString,
  args: isRecord,
  hint: optional(isString),
  title: optional(isString),
  severity: optional(isOneOf('low', 'medium', 'high')),
  icon: optional(isString),
  payload: isAnything,
  requestedAt: isNumber,
  deadline: isNumber,
  approvals: isObjectOf({ given: isNumber, needed: isNumber }),
  voted: isBoolean,
  version: optional(isNumber),
  step: isNumber,
  reason: optional(isString),
  editedArgs: optional(isRecord),
  approvedPayload: isAnything,
  chatId: optional(isString),
  messageId: optional(isString),
  toolCallId: optional(isString),
  own: isBoolean,
})

/** A line of an approval's history; which further fields there are depends on `type`. */
export interface ApprovalRecord {
  readonly at: number
  readonly type: string
  readonly [field: string]: unknown
}

const isApprovalRecord: Guard<ApprovalRecord> = isObjectOf<Pick<ApprovalRecord, 'at' | 'type'>>({
  at: isNumber,
  type: isString,
})

/** What a page that watches a chat is told of; what it then reads, it reads where it always does. */
export type ChatEvent =
  /** A turn begins or goes on: resume to read it. */
  | { readonly type: 'turn'; readonly messageId: string }
  | { readonly type: 'approval'; readonly approvalId: string; readonly state: string }

/** A message, as far as a page relies on it without looking. */
interface StoredMessage {
  readonly id: string
  readonly role: 'user' | 'assistant'
  readonly metadata?: Record<string, unknown> | undefined
  readonly parts: StoredPart[]
}

interface StoredPart {
  readonly type: string
  readonly [field: string]: unknown
}

const isStoredMessage = isObjectOf<StoredMessage>({
  id: isString,
  role: isOneOf('user', 'assistant'),
  metadata: optional(isRecord),
  parts: isArrayOf(isPart),
})

function isPart(part: unknown): part is StoredPart {
  if (!isRecord(part)) return false
  const { type, text, toolCallId, state, url, mediaType } = part
  if (!isString(type)) return false
  if (type === 'text' || type === 'reasoning') return isString(text)
  if (type === 'file') return isString(url) && isString(mediaType)
  if (type.startsWith('tool-')) return isString(toolCallId) && isString(state)
  return !type.startsWith('data-') || 'data' in part
}

export const isStoredChat = isObjectOf<{
  readonly messages: StoredMessage[]
  readonly running: boolean
}>({ messages: isArrayOf(isStoredMessage), running: isBoolean })

export const isChatList = isObjectOf<{ readonly chats: ChatSummary[] }>({
  chats: isArrayOf(isChatSummary),
})

/** A page of what waits for a person, the oldest first. */
export interface ApprovalPage {
  readonly approvals: PendingApproval[]
  /** Where the next page begins, if there is one. */
  readonly next?: string | undefined
}

export const isApprovalPage = isObjectOf<ApprovalPage>({
  approvals: isArrayOf(isPendingApproval),
  next: optional(isString),
})

export const isApprovalWithHistory = isObjectOf<{
  readonly approval: PendingApproval
  readonly history: ApprovalRecord[]
}>({ approval: isPendingApproval, history: isArrayOf(isApprovalRecord) })

export const isApprovalNow = isObjectOf<{ readonly approval: PendingApproval }>({
  approval: isPendingApproval,
})

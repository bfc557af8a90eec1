import type { Guard } from './guards.ts'
import { isBoolean, isEither, isNumber, isObjectOf, isOneOf, isString, optional } from './guards.ts'

/** A chat as a list shows it; times in ms since 1970. */
export interface ChatSummary {
  readonly id: string
  /** What its owner calls it, or the beginning of the first thing they said; empty while nothing was said. */
  readonly title: string
  readonly createdAt: number
  readonly updatedAt: number
  /** Whether an answer is being written now. */
  readonly running: boolean
  /** How many approvals are open. */
  readonly pending: number
  /** The name of its agent, where the bridge has several. */
  readonly agent?: string | undefined
}

export const isChatSummary = isObjectOf<ChatSummary>({
  id: isString,
  title: isString,
  createdAt: isNumber,
  updatedAt: isNumber,
  running: isBoolean,
  pending: isNumber,
  agent: optional(isString),
})

interface ChatChanged {
  readonly type: 'chat'
  readonly chatId: string
}

interface ApprovalChanged {
  readonly type: 'approval'
  readonly approvalId: string
  readonly state: string
  /** The chat, where it is the reader's own. */
  readonly chatId?: string | undefined
}

interface TurnStarted {
  readonly type: 'turn'
  readonly chatId: string
  readonly messageId: string
}

/** Which list is to be read again. */
export type ListEvent = ChatChanged | ApprovalChanged

/** What `GET /events` tells: of the lists, and of turns in the reader's chats. */
export type FeedEvent = ListEvent | TurnStarted

const isListEvent: Guard<ListEvent> = isEither(
  isObjectOf<ChatChanged>({ type: isOneOf('chat'), chatId: isString }),
  isObjectOf<ApprovalChanged>({
    type: isOneOf('approval'),
    approvalId: isString,
    state: isString,
    chatId: optional(isString),
  }),
)

export const isFeedEvent: Guard<FeedEvent> = isEither(
  isListEvent,
  isObjectOf<TurnStarted>({ type: isOneOf('turn'), chatId: isString, messageId: isString }),
)

import type { Guard } from './guards.ts'
import { isBoolean, isEither, isNumber, isObjectOf, isOneOf, isString, optional } from './guards.ts'

/** An entry of the chat list. Times are in ms since 1970. */
export interface ChatSummary {
  readonly id: string
  /** The name that the owner chose, or the beginning of the first message. Empty if there is no message. */
  readonly title: string
  readonly createdAt: number
  readonly updatedAt: number
  /** Whether a reply is being written. */
  readonly running: boolean
  /** The number of pending approvals. */
  readonly pending: number
  /** The name of the agent, if the bridge has several. */
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
  /** The chat, if it belongs to the reader. */
  readonly chatId?: string | undefined
}

interface TurnStarted {
  readonly type: 'turn'
  readonly chatId: string
  readonly messageId: string
}

/** An event that says which list has changed. */
export type ListEvent = ChatChanged | ApprovalChanged

/** An event of `GET /events`: a list has changed, or a turn has started in a chat of the reader. */
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

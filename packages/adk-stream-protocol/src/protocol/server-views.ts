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
  isEither,
} from './guards.ts'

import type { DecidingWords, DecisionEvidence } from './decision-evidence.ts'
import type { GrantOffer } from './grants.ts'
import { isGrantOffer, isUsedGrant } from './grants.ts'
import type { ErrorBody } from './error-codes.ts'
import { isServerError } from './error-codes.ts'
import type { Preview, ShownPreview } from './preview.ts'
import { isPreview, isShownPreview } from './preview.ts'
import type { QuestionTerms } from './question-terms.ts'
import { QUESTION_GUARDS } from './question-terms.ts'

/** The HTTP responses of the server, as clients read them. Times are in ms since 1970. */

/**
 * A person in an approval.
 *
 * @inline
 */
export interface ShownPerson {
  /** The id of the principal. */
  readonly id: string
  /** The name that the application gives. */
  readonly name?: string | undefined
  /** Whether this is the reading principal. */
  readonly own?: boolean | undefined
}

/**
 * A step of an approval: how many people must approve, and who may.
 *
 * @inline
 */
export interface ShownStep {
  readonly needed: number
  readonly given: number
  readonly principals: readonly ShownPerson[]
  readonly roles: readonly string[]
}

/**
 * The approval of one person.
 *
 * @inline
 */
export interface ShownVote {
  readonly by: ShownPerson
  readonly step: number
  readonly at: number
  /** The person who created the link with which the voter was identified. */
  readonly linkBy?: ShownPerson | undefined
  /** The person who decided in the place of the voter. */
  readonly delegate?: ShownPerson | undefined
}

/** An approval as a principal sees it in `GET /approvals`. It has an outcome if the list also contains decided ones. */
export interface PendingApproval extends QuestionTerms, DecisionEvidence {
  readonly id: string
  readonly state: string
  readonly toolName: string
  readonly args: Record<string, unknown>
  readonly hint?: string | undefined
  readonly title?: string | undefined
  readonly severity?: 'low' | 'medium' | 'high' | undefined
  /** Whether a value could mislead the person who decides. The severity is then one level above the policy's. */
  readonly misleading?: true | undefined
  readonly icon?: string | undefined
  readonly payload?: unknown
  /** Whether the policy gives a preview of the call. */
  readonly hasPreview?: boolean | undefined
  /** What the call would do now. Absent if it cannot be determined. */
  readonly preview?: ShownPreview | undefined
  /** The JSON Schema of the arguments, if one person can edit them. */
  readonly argsSchema?: Record<string, unknown> | undefined
  /** The names of the agents that lead to the call, if it was made inside an agent that is used as a tool. */
  readonly path?: readonly string[] | undefined
  /** The grants that the person can choose with the decision. */
  readonly offers?: readonly GrantOffer[] | undefined
  readonly requestedAt: number
  readonly deadline: number
  readonly approvals: { readonly given: number; readonly needed: number }
  /** Whether the principal has approved. */
  readonly voted: boolean
  /** The number of changes of the approval. */
  readonly version?: number | undefined
  readonly step: number
  readonly reason?: string | undefined
  readonly editedArgs?: Record<string, unknown> | undefined
  /** The approver's response to the `payload` of the tool. */
  readonly approvedPayload?: unknown
  /** Where the call was made. Only the owner of the chat sees it. */
  readonly chatId?: string | undefined
  readonly messageId?: string | undefined
  readonly toolCallId?: string | undefined
  /** Whether the call was made in a chat of the principal. */
  readonly own: boolean
  /** The person in whose chat the call was made. */
  readonly requester?: ShownPerson | undefined
  /** The message of that person that led to the call, if the policy shows it. */
  readonly userText?: string | undefined
  readonly votes?: readonly ShownVote[] | undefined
  /** The steps of the approval, in order. */
  readonly steps?: readonly ShownStep[] | undefined
  /** When the approval reached its present state. Absent while it is pending. */
  readonly at?: number | undefined
  /** Who approved or denied. */
  readonly by?: readonly ShownPerson[] | undefined
  /** What the call did, as the policy describes it. Only the owner of the chat sees it. */
  readonly receipt?: Preview | undefined
  /** Whether the principal can decide now. */
  readonly mayDecide?: boolean | undefined
  /** Why not: `decided`, `voted`, `link-used`, `later-step`, `earlier-step` or `not-named`. */
  readonly whyNot?: string | undefined
}

const isPerson = isObjectOf<ShownPerson>({
  id: isString,
  name: optional(isString),
  own: optional(isBoolean),
})

const isPendingApproval = isObjectOf<PendingApproval>({
  id: isString,
  state: isString,
  toolName: isString,
  args: isRecord,
  hint: optional(isString),
  title: optional(isString),
  severity: optional(isOneOf('low', 'medium', 'high')),
  misleading: optional(isOneOf(true)),
  icon: optional(isString),
  payload: isAnything,
  ...QUESTION_GUARDS,
  hasPreview: optional(isBoolean),
  preview: optional(isShownPreview),
  argsSchema: optional(isRecord),
  path: optional(isArrayOf(isString)),
  offers: optional(isArrayOf(isGrantOffer)),
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
  requester: optional(isPerson),
  userText: optional(isString),
  votes: optional(
    isArrayOf(
      isObjectOf<ShownVote>({
        by: isPerson,
        step: isNumber,
        at: isNumber,
        linkBy: optional(isPerson),
        delegate: optional(isPerson),
      }),
    ),
  ),
  steps: optional(
    isArrayOf(
      isObjectOf<ShownStep>({
        needed: isNumber,
        given: isNumber,
        principals: isArrayOf(isPerson),
        roles: isArrayOf(isString),
      }),
    ),
  ),
  at: optional(isNumber),
  by: optional(isArrayOf(isPerson)),
  reply: optional(
    isObjectOf<DecidingWords>({ words: isString, channel: isOneOf('typed', 'spoken') }),
  ),
  grant: optional(isUsedGrant),
  delegate: optional(isString),
  receipt: optional(isPreview),
  mayDecide: optional(isBoolean),
  whyNot: optional(isString),
})

/** An entry of the history of an approval. `type` determines its other fields. */
export interface ApprovalRecord {
  readonly at: number
  readonly type: string
  readonly [field: string]: unknown
}

const isApprovalRecord: Guard<ApprovalRecord> = isObjectOf<Pick<ApprovalRecord, 'at' | 'type'>>({
  at: isNumber,
  type: isString,
})

/**
 * An event of a chat. It says what has changed, and the client reads the change with the usual requests.
 *
 * @inline
 */
export type ChatEvent =
  /** A turn has started or resumed. Resume the chat to read it. `turn` is the id of the turn. */
  | { readonly type: 'turn'; readonly messageId: string; readonly turn: string }
  /** What is stored has changed, and no turn is running. `position` is the position of the chat. */
  | { readonly type: 'stored'; readonly position: string }
  | { readonly type: 'approval'; readonly approvalId: string; readonly state: string }

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
  /** The id of the turn. */
  readonly turn: string
}

interface ChatStored {
  readonly type: 'stored'
  readonly chatId: string
  /** The position of the chat. */
  readonly position: string
}

/**
 * An event that says which list has changed.
 *
 * @inline
 */
export type ListEvent = ChatChanged | ApprovalChanged

/** An event of `GET /events`: a list has changed, or a turn has started or something was stored in a chat of the reader. */
export type FeedEvent = ListEvent | TurnStarted | ChatStored

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
  isEither(
    isObjectOf<TurnStarted>({
      type: isOneOf('turn'),
      chatId: isString,
      messageId: isString,
      turn: isString,
    }),
    isObjectOf<ChatStored>({ type: isOneOf('stored'), chatId: isString, position: isString }),
  ),
)

/** The fields of a message that a page relies on. */
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
  readonly position: string
  readonly after?: string | undefined
}>({
  messages: isArrayOf(isStoredMessage),
  running: isBoolean,
  position: isString,
  after: optional(isString),
})

/** A chat in the list of `GET /chats`. */
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

const isChatSummary = isObjectOf<ChatSummary>({
  id: isString,
  title: isString,
  createdAt: isNumber,
  updatedAt: isNumber,
  running: isBoolean,
  pending: isNumber,
  agent: optional(isString),
})

export const isChatList = isObjectOf<{ readonly chats: ChatSummary[] }>({
  chats: isArrayOf(isChatSummary),
})

/**
 * A page of pending approvals, oldest first.
 *
 * @inline
 */
export interface ApprovalPage {
  readonly approvals: PendingApproval[]
  /** The cursor of the next page, if there is one. */
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

/** What became of decisions that were sent in one request. */
export const isDecidedTogether = isObjectOf<{
  readonly results: readonly ({ readonly id: string } & Partial<ErrorBody>)[]
}>({
  results: isArrayOf(
    isObjectOf<{ readonly id: string } & Partial<ErrorBody>>({
      id: isString,
      error: optional(isServerError),
    }),
  ),
})

/** What a pending call would do with edited arguments. */
export interface EditPreview {
  /** Whether the policy gives previews. Without `preview`, it cannot be made now. */
  readonly hasPreview?: boolean | undefined
  readonly preview?: ShownPreview | undefined
  /** The severity of the edited call. */
  readonly severity?: PendingApproval['severity']
  readonly misleading?: PendingApproval['misleading']
}

export const isEditPreview = isObjectOf<EditPreview>({
  hasPreview: optional(isBoolean),
  preview: optional(isShownPreview),
  severity: optional(isOneOf('low', 'medium', 'high')),
  misleading: optional(isOneOf(true)),
})

/**
 * A link with which another person can decide an approval once.
 *
 * @inline
 */
export interface CreatedLink {
  readonly approvalId: string
  /** Secret. Put it into the fragment of a URL, which browsers send to no server. */
  readonly token: string
  readonly expiresAt: number
}

export const isCreatedLink = isObjectOf<CreatedLink>({
  approvalId: isString,
  token: isString,
  expiresAt: isNumber,
})

/**
 * An approval as the holder of a link sees it.
 *
 * @inline
 */
export interface LinkedApproval {
  readonly approval: PendingApproval
  readonly expiresAt: number
  /** The person who created the link. */
  readonly from: ShownPerson
}

const LINKED = { approval: isPendingApproval, expiresAt: isNumber, from: isPerson }

export const isLinkedApproval = isObjectOf<LinkedApproval>(LINKED)

export const isOpenedLink = isObjectOf<LinkedApproval & { readonly key: string }>({
  ...LINKED,
  key: isString,
})

export const isLinkDecided = isObjectOf<{ readonly approval: { readonly state: string } }>({
  approval: isObjectOf<{ readonly state: string }>({ state: isString }),
})

import type { Preview } from '../protocol/preview.ts'
import type { SignInTerms } from '../protocol/sign-in-terms.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import type { ToolClaims } from './tool-claims.ts'
import type { Reply } from './understand-reply.ts'

/** A tool call that people approve or deny: an entry of the ledger. Only `state`, `votes`, `links` and `version` change. */
export interface Approval {
  /** The id of ADK's confirmation request. It cannot be guessed. */
  readonly id: string
  readonly chat: AppChatRef
  /** The assistant message whose turn waits for the decision. */
  readonly messageId: string
  /** The worker whose live session made the call and continues after the decision. Undefined for calls outside a live session. */
  readonly liveWorker?: string
  readonly toolCallId: string
  readonly toolName: string
  /** The arguments that people see when they decide. */
  readonly args: Readonly<Record<string, unknown>>
  /** Binds the decision to the call: SHA-256 over the canonical JSON of chat, call, tool and arguments. */
  readonly digest: string
  readonly terms: ApprovalTerms
  readonly requestedAt: number
  /** When the approval expires, by the clock of the store. */
  readonly deadline: number
  readonly votes: readonly Vote[]
  /** The links with which people without an account can decide, until they are used. Default: none. */
  readonly links?: readonly ApprovalLink[]
  readonly state: ApprovalState
  /** The number of transitions. Each transition is a compare-and-set on it. */
  readonly version: number
}

/** What a person is asked for by an entry of the ledger that is not an approval. */
type QuestionKind = 'input' | 'sign-in' | 'elicitation'

/** The terms of an approval, as the policy set them when the call was made. */
export interface ApprovalTerms {
  /** What the person is asked for. Absent for an approval. The answer to a question is the `payload` of its decision. */
  readonly kind?: QuestionKind
  /** The JSON Schema of the answer to a question, as `readAnswerSchema` returns it. Absent if any answer is valid. */
  readonly schema?: Readonly<Record<string, unknown>>
  /** The sign-in that the call needs, if that is the question. */
  readonly signIn?: SignInTerms
  readonly hint?: string
  readonly title?: string
  readonly severity?: 'low' | 'medium' | 'high'
  readonly icon?: string
  /** The payload that the tool adds to its request. */
  readonly payload?: unknown
  /**
   * The steps of the approval, in order. Each step needs its number of approvals by different people before the next
   * step starts.
   */
  readonly chain: readonly ApprovalStep[]
  /** Whether the tool may run again with the same idempotency key if it is not known whether it ran. */
  readonly idempotent: boolean
  /** Whether the policy gives a preview, and whether an approval must name the one that the person saw. */
  readonly preview?: 'optional' | 'required'
  /** Whether the policy reads the result of the call, with `isFailure` or `receipt`. */
  readonly readsResult?: true
  /** Whether those who may see the approval see the message of the user that led to the call. */
  readonly showsUserText?: true
  /** That message as plain text, shortened. Absent if it had no text when the call was made. */
  readonly userText?: string
  /** Whether a short reply in the chat decides the call. */
  readonly acceptsReplies?: true
  /** What the MCP server claimed about the tool when the call was made. Absent for other tools. */
  readonly claims?: ToolClaims
  /** The names of the agents that lead to the call, if it was made inside an agent that is used as a tool. The policy does not set it. */
  readonly path?: readonly string[]
}

/** A step of an approval: how many people must approve, and who may. */
export interface ApprovalStep {
  /** How many different principals must approve. */
  readonly count: number
  /** The ids of principals who may decide. */
  readonly principals: readonly string[]
  readonly roles: readonly string[]
}

/** A link that lets one person decide an approval once. The ledger stores hashes of its secrets only. */
export interface ApprovalLink {
  /** The id of the link in the audit record. It is not secret. */
  readonly id: string
  /** SHA-256 of the token in the link. */
  readonly tokenHash: string
  /** SHA-256 of the key that replaced the token when the link was opened. Absent until then. */
  readonly keyHash?: string
  /** As whom its holder decides. */
  readonly as: { readonly id: string; readonly roles: readonly string[] }
  /** The principal who created it. */
  readonly by: string
  readonly expiresAt: number
}

/** The approval of one person. There is no vote for a denial, because a single denial decides. */
export interface Vote {
  readonly principalId: string
  readonly step: number
  readonly at: number
  /** The principal who created the link with which this person was identified. Absent for a person with credentials. */
  readonly linkBy?: string
  /** The message that approved the call. Absent if the person used a form. */
  readonly reply?: Reply
}

/** The state of an approval, with what is known about it. */
export type ApprovalState =
  | { readonly name: 'requested' }
  | {
      readonly name: 'approved'
      readonly at: number
      /** The arguments that run instead of `args`, if the approver edited them. */
      readonly editedArgs?: Readonly<Record<string, unknown>>
      /** The approver's response to the payload of the tool. */
      readonly payload?: unknown
      readonly reason?: string
    }
  | {
      readonly name: 'denied'
      readonly at: number
      readonly by: string
      readonly reason?: string
      /** The message that denied the call. Absent if the person used a form. */
      readonly reply?: Reply
    }
  | { readonly name: 'expired'; readonly at: number }
  | { readonly name: 'cancelled'; readonly at: number; readonly reason: string }
  | {
      readonly name: 'executing'
      readonly at: number
      readonly worker: string
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }
  | {
      readonly name: 'succeeded'
      readonly at: number
      readonly output: unknown
      /** What the call did, as the policy describes it. */
      readonly receipt?: Preview
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }
  | {
      readonly name: 'failed'
      readonly at: number
      readonly error: string
      /** The result that reports the failure. Absent if the tool threw. */
      readonly output?: unknown
      readonly receipt?: Preview
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }
  /** The process crashed, or its lease expired, while the tool was running. The call may or may not have taken effect. */
  | {
      readonly name: 'unknown'
      readonly at: number
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }

/** The name of a state of an approval. */
export type ApprovalStateName = ApprovalState['name']

/** Returns the message that decided an approval. Returns undefined if it was decided in a form, or not at all. */
export function findReply({ state, votes }: Pick<Approval, 'state' | 'votes'>): Reply | undefined {
  return state.name === 'denied' ? state.reply : votes.find(({ reply }) => reply)?.reply
}

/** Whether an approval was decided or has ended, so that its turn can resume. A running call is neither. */
export function isDecided({ state }: Approval): boolean {
  return state.name !== 'requested' && state.name !== 'executing'
}

import type { GrantOffer } from '../protocol/grants.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'

/** A decision of a person for calls that follow. */
export interface Grant {
  readonly id: string
  /** The chat in which it was given. */
  readonly chat: AppChatRef
  /** The approval with whose decision it was given, and its call. */
  readonly approvalId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly title?: string
  /** Whether it is a part of an approved plan: the policy must let the call be part of plans, instead of offering the grant. */
  readonly plan?: true
  /** The principal who gave it. */
  readonly by: string
  readonly offer: GrantOffer
  /** The values of the pinned arguments. */
  readonly pinned: Readonly<Record<string, unknown>>
  readonly declaration: string
  readonly policyVersion?: string
  readonly severity?: 'low' | 'medium' | 'high'
  readonly grantedAt: number
  /** When it ends, by the clock of the store. Absent for a denial. */
  readonly expiresAt?: number
}

/** A grant with what has become of it. */
export interface StoredGrant extends Grant {
  readonly state: 'open' | 'suspended' | 'revoked' | 'replaced'
  readonly uses: number
  /** The exact sum of the budget's argument. */
  readonly spent: number
}

/** A change of a grant that is stored in the transaction of a transition. */
export type GrantWrite =
  /** Adds a grant, and replaces the open one of the same tool and scope. `max`: the exact largest sum, if there is a budget. */
  | { readonly type: 'open'; readonly grant: Grant; readonly max?: number }
  /** Adds the grants of a plan, and replaces the open ones of earlier plans in the chat. */
  | { readonly type: 'open-plan'; readonly chat: AppChatRef; readonly grants: readonly Grant[] }
  /** Uses a grant. The transaction stores nothing if the grant is not open, has ended, or would exceed its limits. */
  | {
      readonly type: 'use'
      readonly owner: GrantOwner
      readonly id: string
      readonly amount: number
    }
  /** Ends an open grant. Has no effect on one that has ended. */
  | {
      readonly type: 'end'
      readonly owner: GrantOwner
      readonly id: string
      readonly state: 'suspended' | 'revoked'
    }

type GrantOwner = Omit<AppChatRef, 'chatId'>

/** A grant as it was given. The approval says for which call. */
export type GivenGrant = Pick<Grant, 'id' | 'offer' | 'pinned'>

/** What happened to the grants that were given with an approval. */
export type GrantEvent =
  /** The grants that an approved plan gave, one for each different call of it. */
  | {
      readonly type: 'grants-given'
      readonly grants: readonly (GivenGrant & Pick<Grant, 'toolName'>)[]
    }
  /** A grant that was given with this approval covers no further call: somebody revoked it, or text from outside entered a conversation. */
  | { readonly type: 'grant-revoked'; readonly grantId: string; readonly by: string }
  | { readonly type: 'grant-suspended'; readonly grantId: string; readonly chatId: string }

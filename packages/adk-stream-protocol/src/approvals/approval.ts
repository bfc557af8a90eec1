/** Whose call it is that waits: the chat of a principal, in an application. */
export interface ApprovalChat {
  readonly appName: string
  readonly principalId: string
  readonly chatId: string
}

/** One tool call that a person decides: an entry of the ledger. All but `state`, `votes` and `version` is fixed when it is asked. */
export interface Approval {
  /** Unguessable; the id of ADK's confirmation request. */
  readonly id: string
  readonly chat: ApprovalChat
  /** The assistant message whose turn waits. */
  readonly messageId: string
  /** The worker whose live conversation made the call and goes on by the decision. Undefined for a call made turn by turn. */
  readonly liveWorker?: string
  readonly toolCallId: string
  readonly toolName: string
  /** The arguments as they were shown. */
  readonly args: Readonly<Record<string, unknown>>
  /** Binds the decision to the call: SHA-256 over the canonical JSON of chat, call, tool and arguments. */
  readonly digest: string
  readonly terms: ApprovalTerms
  readonly requestedAt: number
  /** When it expires, by the store's clock. */
  readonly deadline: number
  readonly votes: readonly Vote[]
  readonly state: ApprovalState
  /** Counts the transitions; every one is a compare-and-set on it. */
  readonly version: number
}

/** What the policy says about a call, as it was when the call was asked. */
export interface ApprovalTerms {
  readonly hint?: string
  readonly title?: string
  readonly severity?: 'low' | 'medium' | 'high'
  readonly icon?: string
  /** What the tool itself adds to its request. */
  readonly payload?: unknown
  /** Who decides, in order: every step needs its number of approvals by different people before the next is asked. */
  readonly chain: readonly ApprovalStep[]
  /** A tool that may be run again with the same idempotency key when nobody knows whether it ran. */
  readonly idempotent: boolean
}

export interface ApprovalStep {
  /** How many different principals must approve. */
  readonly count: number
  /** Principals by id, or by a role of theirs. */
  readonly principals: readonly string[]
  readonly roles: readonly string[]
}

/** One approval by one person. A denial needs no vote: the first one decides. */
export interface Vote {
  readonly principalId: string
  readonly step: number
  readonly at: number
}

export type ApprovalState =
  | { readonly name: 'requested' }
  | {
      readonly name: 'approved'
      readonly at: number
      /** What runs in place of `args`, when the approver changed it. */
      readonly editedArgs?: Readonly<Record<string, unknown>>
      /** What the approver answers to a tool that asked with a payload. */
      readonly payload?: unknown
      readonly reason?: string
    }
  | { readonly name: 'denied'; readonly at: number; readonly by: string; readonly reason?: string }
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
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }
  | {
      readonly name: 'failed'
      readonly at: number
      readonly error: string
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }
  /** The process died, or lost its lease, while the tool ran: it may or may not have taken effect. */
  | {
      readonly name: 'unknown'
      readonly at: number
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }

export type ApprovalStateName = ApprovalState['name']

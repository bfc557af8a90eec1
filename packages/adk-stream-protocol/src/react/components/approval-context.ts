import { createContext, use } from 'react'

import type { Decision, Votes } from '../reading/approval.ts'
import type { ServerError } from '../reading/problem.ts'

/** How the cards of a list send decisions, and what they show that the messages do not contain. */
export interface ApprovalContextValue {
  /** Sends a decision. Report an error through `refusals`. */
  readonly onDecide: (approvalId: string, decision: Decision) => void | Promise<void>
  /** Why the server refused decisions, by approval id. */
  readonly refusals: ReadonlyMap<string, ServerError>
  /** How many people have approved, by approval id. */
  readonly votes: ReadonlyMap<string, Votes>
  /** Hints that are newer than those in the messages, by approval id. */
  readonly hints: ReadonlyMap<string, string>
  /** The approval ids of decisions that the server has not confirmed. */
  readonly unconfirmed: ReadonlySet<string>
  /** Whether a decision can be sent now. Default true. */
  readonly isConnected: boolean
}

/** A context rather than props: a refusal renders one card and not every message. */
export const ApprovalContext = createContext<ApprovalContextValue>({
  onDecide: () => undefined,
  refusals: new Map(),
  votes: new Map(),
  hints: new Map(),
  unconfirmed: new Set(),
  isConnected: true,
})

export function useApprovalContext(): ApprovalContextValue {
  return use(ApprovalContext)
}

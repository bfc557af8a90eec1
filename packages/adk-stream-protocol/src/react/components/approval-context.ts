import { createContext, use } from 'react'

import { NONE_WAITING, type WaitingDecisions } from '../../client/api/decision-outbox.ts'
import type { ApprovalDetails, Decision, Votes } from '../reading/approval.ts'
import type { PendingSum } from '../reading/preview.ts'
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
  /** The current previews and schemas of pending approvals, by approval id. */
  readonly details: ReadonlyMap<string, ApprovalDetails>
  /** Reads a pending approval again. Without it, a card has no button to load its preview again. */
  readonly onRefresh?: ((approvalId: string) => void) | undefined
  /** The approval ids of decisions that the server has not confirmed. */
  readonly unconfirmed: ReadonlySet<string>
  /** Whether a decision can be sent now. Default true. */
  readonly isConnected: boolean
  /** Votes and answers that wait for the connection, by approval id. */
  readonly waitingDecisions: WaitingDecisions
  /** Takes back a decision that waits for the connection. Returns false if it may have arrived. */
  readonly onCancelDecision?: ((approvalId: string) => boolean) | undefined
}

/** The context of the cards of a list, with what the list computes. */
interface CardContext extends ApprovalContextValue {
  /** The sums of what is pending, by approval id. */
  readonly sums: ReadonlyMap<string, PendingSum>
}

/** A context rather than props: a refusal renders one card and not every message. */
export const ApprovalContext = createContext<CardContext>({
  onDecide: () => undefined,
  refusals: new Map(),
  votes: new Map(),
  hints: new Map(),
  details: new Map(),
  sums: new Map(),
  unconfirmed: new Set(),
  waitingDecisions: NONE_WAITING,
  isConnected: true,
})

export function useApprovalContext(): CardContext {
  return use(ApprovalContext)
}

import { createContext, use } from 'react'

import type { Decision, Votes } from '../reading/approval.ts'
import type { ToldError } from '../reading/problem.ts'

/** Where cards within a list bring decisions, and what they know of their approval beside the message. */
export interface ApprovalDesk {
  /** What goes wrong with it comes back as a refusal. */
  readonly onDecide: (approvalId: string, decision: Decision) => void | Promise<void>
  readonly refusals: ReadonlyMap<string, ToldError>
  /** How far those of several people have come, by approval. */
  readonly votes: ReadonlyMap<string, Votes>
  /** Hints that are newer than those of the messages, by approval. */
  readonly hints: ReadonlyMap<string, string>
  /** The ids of decisions that the server has not confirmed. */
  readonly unconfirmed: ReadonlySet<string>
  /** Whether a decision can be sent now. */
  readonly isConnected: boolean
}

/** A context, so that a refusal renders one card anew and not every message. */
export const ApprovalDeskContext = createContext<ApprovalDesk>({
  onDecide: () => undefined,
  refusals: new Map(),
  votes: new Map(),
  hints: new Map(),
  unconfirmed: new Set(),
  isConnected: true,
})

export function useApprovalDesk(): ApprovalDesk {
  return use(ApprovalDeskContext)
}

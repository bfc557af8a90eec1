import { createContext, use } from 'react'

import type { Decision } from '../reading/approval.ts'
import type { ToldError } from '../reading/problem.ts'

/** Where cards within a list bring decisions, and what they know of their approval beside the message. */
export interface ApprovalDesk {
  /** What goes wrong with it comes back as a refusal. */
  readonly onDecide: (approvalId: string, decision: Decision) => void | Promise<void>
  readonly refusals: ReadonlyMap<string, ToldError>
  /** How many of the needed approvals are given, by approval. */
  readonly given: ReadonlyMap<string, number>
}

/** A context, so that a refusal renders one card anew and not every message. */
export const ApprovalDeskContext = createContext<ApprovalDesk>({
  onDecide: () => undefined,
  refusals: new Map(),
  given: new Map(),
})

export function useApprovalDesk(): ApprovalDesk {
  return use(ApprovalDeskContext)
}

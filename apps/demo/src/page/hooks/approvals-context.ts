import { createContext, use } from 'react'

import type { Decision } from '../chat/approval.ts'
import type { Pending } from '../chat/approvals-api.ts'
import type { Refusals } from './use-decisions.ts'

/** What a card needs to know of its approval beside the message. */
export interface ApprovalsDesk {
  readonly decide: (approvalId: string, decision: Decision) => Promise<void>
  readonly refusals: Refusals
  readonly pending: readonly Pending[]
}

export const ApprovalsContext = createContext<ApprovalsDesk>({
  decide: () => Promise.resolve(),
  refusals: new Map(),
  pending: [],
})

export function useApprovals(): ApprovalsDesk {
  return use(ApprovalsContext)
}

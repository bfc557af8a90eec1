import type { Event } from '@google/adk'

import type { ApprovalTerms } from '../approvals/approval.ts'
import type { Call } from '../approvals/digest.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { Decider } from '../approvals/deciders.ts'
import type { Decision, DecisionMeans } from '../approvals/next-approval.ts'

/** Decisions that people make for calls that follow. Modules implement it. */
export interface PriorDecisions {
  /** Returns the decision that a person made before for a call like this one. Returns undefined if somebody has to be asked. */
  find(call: UndecidedCall, ledger: Ledger): Promise<Decision | undefined>
  /** Returns how a person decides who has chosen an offer of the approval. */
  choose(offerId: string, by: Decider, ledger: Ledger): Promise<DecisionMeans>
}

/** A call that needs approval, on the terms that the policy sets for it now. */
export interface UndecidedCall extends Call {
  readonly terms: ApprovalTerms
  /** The events of the conversation. */
  readonly events: readonly Event[]
}

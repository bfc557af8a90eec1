import type { DecisionEvidence } from '../protocol/decision-evidence.ts'
import type { DelegationTerms } from './delegation-terms.ts'
import type { GivenGrant, GrantEvent, GrantWrite } from './grant.ts'
import type { GrantTerms } from './grant-terms.ts'
import type { ApprovalLink, LinkEvent, LinkVote, UsedLink } from './link.ts'
import type { ReplyTerms } from './reply-terms.ts'
import type { RequiredRecord } from './required-record.ts'

// What features add to the entries of the ledger. What they add to policies is in `policy.ts`.

/** The terms of an approval that belong to features. */
export interface FeatureTerms extends ReplyTerms, GrantTerms, DelegationTerms {}

/** The fields of an approval that belong to features. Transitions change them. */
export interface FeatureFields {
  /** The links with which people without an account can decide, until they are used. Default: none. */
  readonly links?: readonly ApprovalLink[]
}

/** The fields of a vote that belong to features. */
export interface FeatureVote extends LinkVote {}

/** What the audit record keeps of a decision for features. */
export interface FeatureDecision {
  /** The grant that the person gave with the decision. */
  readonly gives?: GivenGrant
}

/** How a person was identified, besides credentials and accounts in channels. */
export type UsedMeans = UsedLink

/** A change in a table of a feature, or a condition on one, in the transaction of a transition. */
export type FeatureWrite = GrantWrite | RequiredRecord

/** What features note in the audit record. */
export type FeatureEvent = LinkEvent | GrantEvent

/** The types of these events, which change neither the state of an approval nor its votes. */
export const FEATURE_EVENTS = [
  'link-created',
  'link-opened',
  'grants-given',
  'grant-revoked',
  'grant-suspended',
] as const satisfies readonly FeatureEvent['type'][]

/** A vote, and the step to which it belongs. */
export interface PlacedVoter extends FeatureVote, Pick<DecisionEvidence, 'delegate'> {
  readonly principalId: string
  readonly step: number
}

/**
 * Returns the people for whom a vote counts when it is compared with another one: the voter, the principal of the browser that used a
 * link, the delegate, and the creator of the link. The creator's own vote is another person's only if they may not decide what the link decided: the
 * requester may approve a first step, and ask a manager for the second one.
 */
export function listCounted(
  { principalId, linkBy, sharesRight, browser, delegate, step }: PlacedVoter,
  other: PlacedVoter,
): string[] {
  const countsCreator = sharesRight ?? (other.linkBy !== undefined || other.step === step)
  const creator = countsCreator ? linkBy : undefined
  return [principalId, browser, delegate, creator].filter((id) => id !== undefined)
}

import type { Approval, ApprovalStep, ApprovalTerms } from './approval.ts'
import type { PlacedVoter } from './feature-parts.ts'
import { listCounted } from './feature-parts.ts'

/** The principal who decides, with the roles that `authenticate` returned. */
export interface Decider {
  readonly id: string
  readonly roles: readonly string[]
}

/** Returns the index of the step that needs votes. Returns undefined if all steps have enough. */
export function currentStep({ terms, votes }: Approval): number | undefined {
  const step = terms.chain.findIndex(
    ({ count }, index) => votes.filter((vote) => vote.step === index).length < count,
  )
  return step === -1 ? undefined : step
}

/**
 * Whether a chain can be completed by different people. A role may have any number of people, but the principals that a step names may be
 * too few for it, or needed by another step.
 */
export function isCompletable(chain: readonly ApprovalStep[]): boolean {
  const named = chain.filter(({ roles }) => roles.length === 0)
  const needed = named.flatMap(({ count, principals }) =>
    Array.from({ length: count }, () => new Set(principals)),
  )
  const votes = new Map<string, number>()
  return needed.every((_, index) => assign(needed, votes, { index, tried: new Set() }))
}

/** Finds a principal for a needed vote. If one is taken by another vote, that vote takes another principal. */
function assign(
  needed: readonly ReadonlySet<string>[],
  votes: Map<string, number>,
  { index, tried }: { readonly index: number; readonly tried: Set<string> },
): boolean {
  for (const principal of needed[index] ?? []) {
    if (tried.has(principal)) continue
    tried.add(principal)
    const other = votes.get(principal)
    if (other !== undefined && !assign(needed, votes, { index: other, tried })) continue
    votes.set(principal, index)
    return true
  }
  return false
}

/** Whether a principal may see an approval: it belongs to their chat, or they may decide one of its steps. */
export function maySee(
  { chat, terms }: Pick<Approval, 'chat' | 'terms'>,
  principal: Decider,
): boolean {
  return (
    chat.principalId === principal.id || terms.chain.some((step) => isEligible(step, principal))
  )
}

/** Whether a pending approval is in a chat of this principal, can be decided by them now, or has a vote that they can withdraw. */
export function isWaitingFor(approval: Approval, principal: Decider): boolean {
  if (approval.state.name !== 'requested') return false
  const isOwn = approval.chat.principalId === principal.id
  return isOwn || isAsked(approval, principal) || hasVoted(approval, principal)
}

/**
 * Why a principal cannot decide an approval now. `decided`: it is no longer pending. `voted`: they have approved. `later-step`: a step
 * before theirs needs votes. `earlier-step`: their step has enough votes. `not-named`: the policy does not name them. `link-used`: a vote
 * by a link, or of the person in whose place they decided, counts for them.
 */
type Undecidable = 'decided' | 'voted' | 'link-used' | 'later-step' | 'earlier-step' | 'not-named'

/** Returns why a principal cannot decide an approval now, or undefined if they can. */
export function whyUndecidable(approval: Approval, principal: Decider): Undecidable | undefined {
  if (approval.state.name !== 'requested') return 'decided'
  if (hasVoted(approval, principal)) return 'voted'
  if (isAsked(approval, principal))
    return isCounted(approval, { principalId: principal.id }) ? 'link-used' : undefined
  const step = approval.terms.chain.findLastIndex((candidate) => isEligible(candidate, principal))
  if (step === -1) return 'not-named'
  return step > (currentStep(approval) ?? -1) ? 'later-step' : 'earlier-step'
}

/** Whether the vote of this principal alone satisfies the terms. */
export function isDecidedAloneBy(terms: Pick<ApprovalTerms, 'chain'>, by: Decider): boolean {
  const [step] = terms.chain
  return isDecidedByOne(terms) && step !== undefined && isEligible(step, by)
}

export function hasVoted({ votes }: Approval, by: Decider): boolean {
  return votes.some(({ principalId }) => principalId === by.id)
}

/** The people for whom a vote would count. */
export type Voter = Omit<PlacedVoter, 'step'>

/** Whether a vote in the current step would count twice for somebody. */
export function isCounted(approval: Approval, voter: Voter): boolean {
  const step = currentStep(approval) ?? -1
  return approval.votes.some((vote) => isSamePerson(vote, { ...voter, step }))
}

function isSamePerson(one: PlacedVoter, other: PlacedVoter): boolean {
  const people = listCounted(one, other)
  return listCounted(other, one).some((id) => people.includes(id))
}

export function isAsked(approval: Approval, by: Decider): boolean {
  const step = approval.terms.chain[currentStep(approval) ?? -1]
  return step !== undefined && isEligible(step, by)
}

export function isEligible(
  { principals, roles }: ApprovalStep,
  { id, roles: held }: Decider,
): boolean {
  return principals.includes(id) || held.some((role) => roles.includes(role))
}

export function isDecidedByOne({ chain }: Pick<ApprovalTerms, 'chain'>): boolean {
  return chain.length === 1 && chain[0]?.count === 1
}

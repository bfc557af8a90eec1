import { isCounted, isAsked, type Decider } from '../../approvals/deciders.ts'
import type { Approval } from '../../approvals/approval.ts'
import type { DecisionMeans } from '../../approvals/next-approval.ts'

/** The kind of the personal records of delegations: those of the giver, about the delegate. */
export const DELEGATION_KIND = 'delegation'

interface UsedDelegation {
  readonly id: string
  /** The principal who decides in the place of the giver. */
  readonly delegate: string
}

/**
 * A decision of a delegate in the place of the person who decides. It counts for both, so that neither counts twice, and is stored only while
 * the delegation is there.
 */
export function byDelegate({ id, delegate }: UsedDelegation): DecisionMeans {
  return (approval, { by }) => {
    if (!approval.terms.mayDelegate) return { refused: 'invalid-means', message: NOT_DELEGATED }
    if (isOwnRequest(approval, by, delegate))
      return { refused: 'invalid-means', message: OWN_REQUEST }
    const { appName } = approval.chat
    const owner = { appName, principalId: by.id }
    return {
      delegate,
      voter: { delegate },
      writes: { type: 'require-record', owner, kind: DELEGATION_KIND, id },
    }
  }
}

/** Whether a delegate can decide an approval now in the place of a person. */
export function mayDecideFor(approval: Approval, person: Decider, delegate: string): boolean {
  const isOpen = approval.state.name === 'requested' && approval.terms.mayDelegate === true
  const isTheirs = isOpen && isAsked(approval, person) && !isOwnRequest(approval, person, delegate)
  return isTheirs && !isCounted(approval, { principalId: person.id, delegate })
}

/** Whether a delegate has requested the call that somebody else must decide. */
function isOwnRequest({ chat }: Approval, person: Decider, delegate: string): boolean {
  return chat.principalId === delegate && person.id !== delegate
}

const NOT_DELEGATED = 'The policy does not let a delegate decide this call.'
const OWN_REQUEST = 'You have requested this call yourself. Another person must decide it.'

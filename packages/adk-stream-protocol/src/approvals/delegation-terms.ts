import * as z from 'zod'

/** What a policy says about delegates. */
export interface DelegationPolicy {
  /** Whether a delegate of a person who may decide can decide in their place, with the option `delegation` of the bridge. Default false. */
  readonly mayDelegate?: boolean | undefined
}

export const DelegationPolicySchema = { mayDelegate: z.boolean().optional() }

/** What the ledger stores about delegates. */
export interface DelegationTerms {
  /** Whether a person who may decide can let a delegate decide in their place. */
  readonly mayDelegate?: true
}

export function toDelegationTerms({ mayDelegate }: DelegationPolicy): DelegationTerms {
  return mayDelegate ? { mayDelegate: true } : {}
}

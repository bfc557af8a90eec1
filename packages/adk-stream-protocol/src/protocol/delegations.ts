import { isArrayOf, isBoolean, isNumber, isObjectOf, isString, optional } from './guards.ts'
import type { ShownPerson } from './server-views.ts'

/** A person who decides in the place of another one for a time. */
export interface ShownDelegation {
  readonly id: string
  /** The person who is away. */
  readonly from: ShownPerson
  /** The person who decides in their place. */
  readonly to: ShownPerson
  /** When it was given, in ms since 1970. */
  readonly at: number
  /** When it ends by itself. */
  readonly expiresAt?: number | undefined
}

const isNamed = isObjectOf<ShownPerson>({
  id: isString,
  name: optional(isString),
  own: optional(isBoolean),
})

const isDelegation = isObjectOf<ShownDelegation>({
  id: isString,
  from: isNamed,
  to: isNamed,
  at: isNumber,
  expiresAt: optional(isNumber),
})

/** The delegations of a person. */
export interface DelegationLists {
  /** Those that the person gave. */
  readonly given: readonly ShownDelegation[]
  /** Those with which the person can decide in the place of others. */
  readonly received: readonly ShownDelegation[]
}

/** The body of `GET /delegations`. */
export const isDelegationLists = isObjectOf<DelegationLists>({
  given: isArrayOf(isDelegation),
  received: isArrayOf(isDelegation),
})

/** The body of `POST /delegations`. */
export const isGivenDelegation = isObjectOf<{ readonly delegation: ShownDelegation }>({
  delegation: isDelegation,
})

/** The body of `DELETE /delegations/:id`. */
export const isEndedDelegation = isObjectOf<{ readonly ended: boolean }>({ ended: isBoolean })

import { isArrayOf, isNumber, isObjectOf, isOneOf, isRecord, isString, optional } from './guards.ts'

/** The sum of an argument that a grant allows. */
export interface GrantBudget {
  /** The name of the argument. */
  readonly argument: string
  /** The largest sum: an integer for an argument that is an integer, a decimal string such as `'100.00'` for one that is a decimal string. */
  readonly max: number | string
}

/** A grant that a person can choose when they decide: calls like this one are then decided in the same way, and nobody is asked. */
export interface GrantOffer {
  readonly id: string
  /** `approve`: calls with the same arguments run. `deny`: calls of this tool do not run. */
  readonly effect: 'approve' | 'deny'
  /** The arguments that may have other values. All others are pinned, except the one of the budget. */
  readonly free: readonly string[]
  readonly budget?: GrantBudget | undefined
  /** How many calls it covers. Absent for a denial, which has no limit. */
  readonly maxUses?: number | undefined
  /** How long it is valid, in ms. Absent for a denial, which lasts as long as its chat. */
  readonly expiresMs?: number | undefined
  /** Where it applies: in the chat, or in all chats of the person whose chat it is. */
  readonly scope: 'chat' | 'person'
}

const isBudget = isObjectOf<GrantBudget>({
  argument: isString,
  max: (value): value is number | string => isNumber(value) || isString(value),
})

export const isGrantOffer = isObjectOf<GrantOffer>({
  id: isString,
  effect: isOneOf('approve', 'deny'),
  free: isArrayOf(isString),
  budget: optional(isBudget),
  maxUses: optional(isNumber),
  expiresMs: optional(isNumber),
  scope: isOneOf('chat', 'person'),
})

/** The grant that decided an approval. */
export interface UsedGrant {
  readonly id: string
  /** When the person gave it, in ms since 1970. */
  readonly at: number
}

export const isUsedGrant = isObjectOf<UsedGrant>({ id: isString, at: isNumber })

/**
 * The state of a grant. `suspended`: text from outside entered the conversation. `replaced`: by a newer one for the same tool. `ended`: it
 * is used up, or its time is over.
 */
export type GrantState = 'open' | 'suspended' | 'revoked' | 'replaced' | 'ended'

/** A grant as its people see it in `GET /grants`. */
export interface ShownGrant extends Omit<GrantOffer, 'expiresMs'> {
  readonly state: GrantState
  /** The chat in which it was given. */
  readonly chatId: string
  readonly toolName: string
  /** The title of the call, if the policy gives one. */
  readonly title?: string | undefined
  /** The values of the pinned arguments. */
  readonly pinned: Record<string, unknown>
  /** How many calls it has covered. */
  readonly uses: number
  /** The sum of the budget's argument in these calls, in the form of `budget.max`. */
  readonly spent?: number | string | undefined
  /** When it was given, in ms since 1970. */
  readonly at: number
  /** When it ends. Absent for a denial. */
  readonly expiresAt?: number | undefined
}

const isShownGrant = isObjectOf<ShownGrant>({
  id: isString,
  effect: isOneOf('approve', 'deny'),
  free: isArrayOf(isString),
  budget: optional(isBudget),
  maxUses: optional(isNumber),
  scope: isOneOf('chat', 'person'),
  state: isOneOf('open', 'suspended', 'revoked', 'replaced', 'ended'),
  chatId: isString,
  toolName: isString,
  title: optional(isString),
  pinned: isRecord,
  uses: isNumber,
  spent: optional((value): value is number | string => isNumber(value) || isString(value)),
  at: isNumber,
  expiresAt: optional(isNumber),
})

/** The body of `GET /grants`. */
export const isGrantList = isObjectOf<{ readonly grants: readonly ShownGrant[] }>({
  grants: isArrayOf(isShownGrant),
})

/** The body of `DELETE /grants/:id`. */
export const isRevokedGrant = isObjectOf<{ readonly grant: ShownGrant }>({ grant: isShownGrant })

import * as z from 'zod'

import type { GrantOffer } from '../protocol/grants.ts'
import { toExactAmount, unitOf } from '../shared/exact-amounts.ts'
import { digestJson } from './digest.ts'

const HOUR_MS = 3_600_000

/** A grant that a policy offers. */
interface PolicyGrant {
  /** `deny`: whoever denies the call can deny all calls of this tool in the chat. Default `approve`. */
  readonly effect?: 'approve' | 'deny' | undefined
  /** The arguments that may have other values. All others must be the same, except the one of `budget`. Default: none. */
  readonly free?: readonly string[] | undefined
  /**
   * The largest sum of an argument over all covered calls. The argument must be an integer if `max` is one, such as an amount in cents, or
   * a decimal string if `max` is one, such as `'100.00'`. Calls with other values are asked for.
   */
  readonly budget?: { readonly argument: string; readonly max: number | string } | undefined
  /** How many calls the grant covers, at most 100. Default 10. */
  readonly maxUses?: number | undefined
  /** How long the grant is valid, in ms, at most 8 hours. Default: 30 minutes. */
  readonly expiresMs?: number | undefined
  /** Where the grant applies: in this chat, or in all chats of its owner. Default `chat`. */
  readonly scope?: 'chat' | 'person' | undefined
}

/** What a policy says about grants. */
export interface GrantPolicy {
  /**
   * Grants that the person who decides can choose with their decision: further calls like this one are then decided in the same way.
   * A grant to approve has no effect if `severity` is `high`, with `requirePreview`, or if the tool asks for a payload. Only the owner of
   * the chat can choose one, if the owner decides alone, and not because of a role. Default: none.
   */
  readonly grants?: readonly PolicyGrant[] | undefined
  /**
   * Whether such calls can be part of a plan (`planTool`): a person approves several calls together, and each runs once, with exactly the
   * values of the plan. The same calls are left out as from `grants`. `expiresMs`: how long a plan is valid, at most 8 hours, by default 30
   * minutes. Default false.
   */
  readonly plans?: boolean | { readonly expiresMs: number } | undefined
}

const Max = z.union([z.number(), z.string()]).refine((max) => {
  const unit = unitOf(max)
  return unit !== undefined && toExactAmount(max, unit) !== undefined
}, 'Expected a positive integer, or a decimal string such as "100.00"')

const ExpiresMs = z
  .number()
  .positive()
  .max(8 * HOUR_MS)

const Approving = z.strictObject({
  effect: z.literal('approve').optional(),
  free: z.array(z.string().min(1)).readonly().optional(),
  budget: z.strictObject({ argument: z.string().min(1), max: Max }).optional(),
  maxUses: z.int().min(1).max(100).optional(),
  expiresMs: ExpiresMs.optional(),
  scope: z.enum(['chat', 'person']).optional(),
})

const Denying = z.strictObject({ effect: z.literal('deny') })

export const GrantPolicySchema = {
  grants: z
    .array(z.union([Denying, Approving]))
    .max(5)
    .readonly()
    .optional(),
  plans: z.union([z.boolean(), z.strictObject({ expiresMs: ExpiresMs })]).optional(),
}

/** What the ledger stores about grants. */
export interface GrantTerms {
  /** The grants that whoever decides can choose. */
  readonly offers?: readonly GrantOffer[]
  /** Set if the call can be part of a plan. */
  readonly plans?: { readonly expiresMs: number }
  /** The digest of the declaration of the tool. A grant covers only calls with the same one. Absent if no grant can cover the call. */
  readonly declaration?: string
}

interface GrantNeeds extends GrantPolicy {
  readonly severity?: 'low' | 'medium' | 'high' | undefined
  readonly requirePreview?: boolean | undefined
  readonly chain: readonly { readonly count: number; readonly principals: readonly string[] }[]
}

/** Returns the offers of a policy. The ids say what is offered, so the same offer has the same id for each call. */
export function toGrantTerms(
  needs: GrantNeeds & { readonly owner: string },
  payload: unknown,
): GrantTerms {
  const { grants = [], plans, severity, requirePreview, chain, owner } = needs
  const [step] = chain
  if (chain.length !== 1 || step?.count !== 1 || !step.principals.includes(owner)) return {}
  const mayApprove = severity !== 'high' && !requirePreview && payload === undefined
  const offers = grants.map(toOffer).filter(({ effect }) => effect === 'deny' || mayApprove)
  return {
    ...(offers.length > 0 && { offers }),
    ...(plans && mayApprove && { plans: plans === true ? { expiresMs: HOUR_MS / 2 } : plans }),
  }
}

/** Returns the terms of a call that no grant can cover. */
export function withoutOffers<Terms extends GrantTerms>(
  terms: Terms,
): Omit<Terms, keyof GrantTerms> {
  const { offers: _offers, plans: _plans, declaration: _declaration, ...rest } = terms
  return rest
}

function toOffer(grant: PolicyGrant): GrantOffer {
  const offer =
    grant.effect === 'deny'
      ? ({ effect: 'deny', free: [], scope: 'chat' } as const)
      : ({
          effect: 'approve',
          free: [...(grant.free ?? [])].toSorted(),
          ...(grant.budget && { budget: grant.budget }),
          maxUses: grant.maxUses ?? 10,
          expiresMs: grant.expiresMs ?? HOUR_MS / 2,
          scope: grant.scope ?? 'chat',
        } as const)
  return { id: digestJson(offer), ...offer }
}

/** Returns why a grant to approve can never apply. */
export function findGrantFault({
  grants = [],
  plans = false,
  severity,
  requirePreview,
  chain,
}: GrantNeeds): { readonly field: 'grants' | 'plans'; readonly fault: string } | undefined {
  const [step] = chain
  const refuse = (why: string) =>
    ({ field: grants.length > 0 ? 'grants' : 'plans', fault: `${why}. Remove it.` }) as const
  if (grants.length === 0 && !plans) return undefined
  if (chain.length !== 1 || step?.count !== 1)
    return refuse('is not possible if several people decide')
  if (step.principals.length === 0)
    return refuse('needs `principals`, because a person may lose a role')
  if (!plans && grants.every(({ effect }) => effect === 'deny')) return undefined
  if (severity === 'high') return refuse('cannot approve with severity `high`')
  return requirePreview ? refuse('cannot approve with `requirePreview`') : undefined
}

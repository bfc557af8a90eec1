import type { Approval, ApprovalTerms, Refusal } from '../../approvals/approval.ts'
import { isDecidedAloneBy } from '../../approvals/deciders.ts'
import { digestJson } from '../../approvals/digest.ts'
import type { Grant, StoredGrant } from '../../approvals/grant.ts'
import type { Decision, DecisionMeans, NextNote } from '../../approvals/next-approval.ts'
import { createTransition } from '../../approvals/next-approval.ts'
import { assessRisk } from '../../approvals/risk.ts'
import type { UndecidedCall } from '../../calls/prior-decisions.ts'
import type { GrantOffer } from '../../protocol/grants.ts'
import { toExactAmount, unitOf } from '../../shared/exact-amounts.ts'
import { withoutUndefined } from '../../shared/collections.ts'

/** A choice of a person, before the ledger has checked it. */
interface ChosenGrant {
  readonly grantId: string
  readonly offerId: string
  readonly policyVersion: string | undefined
  /** The newest approvals that the person may see. */
  readonly recent: readonly Pick<Approval, 'requestedAt' | 'votes'>[]
}

/** A decision that also gives a grant. Refused if the approval does not offer it, or if this person may not give it. */
export function byGiving({
  grantId: id,
  offerId,
  policyVersion,
  recent,
}: ChosenGrant): DecisionMeans {
  return (approval, { by, approved, editedArgs }, now) => {
    const { chat, terms, args, toolName, toolCallId } = approval
    const offer = terms.offers?.find((each) => each.id === offerId)
    const isOffered = offer && (offer.effect === 'approve') === approved
    if (!isOffered) return refuse('This approval does not offer this grant.')
    if (by.id !== chat.principalId || !isDecidedByOwner(approval))
      return refuse('Only the owner of the chat can give a grant, if they decide alone.')
    if (editedArgs !== undefined)
      return refuse('A grant is for the call as the agent made it. Approve the changed call alone.')
    const { severity, misleading = false } = assessRisk(approval)
    if (approved && (severity === 'high' || misleading))
      return refuse('A severe call is approved each time. It cannot be granted.')
    const pinned = offer.effect === 'deny' ? {} : pinArguments(args, offer)
    if (approved && isHurried(recent, by.id, now))
      return refuse(
        'You have approved many calls at once. Approve this one alone, or try again in a minute.',
      )
    const { budget, expiresMs } = offer
    const max = budget && exactMax(budget)
    const grant: Grant = {
      id,
      chat,
      approvalId: approval.id,
      toolCallId,
      toolName,
      by: by.id,
      offer,
      pinned,
      declaration: terms.declaration ?? '',
      ...withoutUndefined({ title: terms.title, policyVersion, severity }),
      grantedAt: now,
      ...(expiresMs !== undefined && { expiresAt: now + expiresMs }),
    }
    return {
      gives: { id, offer, pinned },
      writes: { type: 'open', grant, ...(max !== undefined && { max }) },
    }
  }
}

/** So many fast approvals in a minute are not read: the person is asked for each further call. */
const MAX_FAST = 10
const FAST_MS = 2_000
const MINUTE_MS = 60_000

/** Whether a person has approved ten calls within a minute, each within two seconds of its request. Uses of a grant do not count. */
function isHurried(recent: ChosenGrant['recent'], by: string, now: number): boolean {
  const fast = recent.filter(({ requestedAt, votes }) =>
    votes.some(
      ({ principalId, at, grant }) =>
        principalId === by && !grant && at - requestedAt < FAST_MS && now - at < MINUTE_MS,
    ),
  )
  return fast.length >= MAX_FAST
}

function refuse(message: string): Refusal {
  return { refused: 'not-offered', message }
}

/** Returns the decision of a grant for a call. Returns undefined if the grant does not cover the call. */
export function decideByGrant(
  grant: StoredGrant,
  call: UndecidedCall,
  policyVersion: string | undefined,
): Decision | undefined {
  const { id, chat, by, offer, state, grantedAt } = grant
  const isPlace = offer.scope === 'person' || chat.chatId === call.chat.chatId
  const isSameTool = grant.toolName === call.toolName
  // The policy judges every call: it must still offer the same, to the owner alone.
  const isOffered = grant.plan
    ? call.terms.plans !== undefined
    : call.terms.offers?.some((each) => each.id === offer.id) === true
  if (state !== 'open' || !isPlace || !isSameTool || !isOffered || !isDecidedByOwner(call))
    return undefined
  const amount = offer.effect === 'deny' ? 0 : coverCall(grant, call, policyVersion)
  if (amount === undefined) return undefined
  const { appName, principalId } = chat
  const writes = { type: 'use', owner: { appName, principalId }, id, amount } as const
  return {
    by: { id: by, roles: [] },
    approved: offer.effect === 'approve',
    means: () => ({ grant: { id, at: grantedAt }, writes }),
  }
}

/** Returns the amount that a call spends. Returns undefined if the grant does not cover it. The store checks the limits again. */
function coverCall(
  { offer, pinned, declaration, severity, uses, spent, ...grant }: StoredGrant,
  { args, terms }: UndecidedCall,
  policyVersion: string | undefined,
): number | undefined {
  const isSameTool = declaration === terms.declaration && grant.policyVersion === policyVersion
  const risk = assessRisk({ args, terms })
  const isAsRisky = !risk.misleading && rank(risk.severity) <= rank(severity)
  const isPinned = digestJson(pinArguments(args, offer)) === digestJson(pinned)
  if (!isSameTool || !isAsRisky || !isPinned || uses >= (offer.maxUses ?? Infinity))
    return undefined
  const { budget } = offer
  if (!budget) return 0
  const unit = unitOf(budget.max)
  const amount = unit && toExactAmount(args[budget.argument], unit)
  return amount !== undefined && spent + amount <= exactMax(budget) ? amount : undefined
}

/** Whether the owner of the chat decides a call alone, and nothing else is asked. */
function isDecidedByOwner({ chat, terms }: Pick<Approval, 'chat' | 'terms'>): boolean {
  const isPlain = isPlainApproval(terms) && terms.path === undefined
  return isPlain && isDecidedAloneBy(terms, { id: chat.principalId, roles: [] })
}

function isPlainApproval({ kind, payload, preview, answeredBy }: ApprovalTerms): boolean {
  return [kind, payload, answeredBy].every((each) => each === undefined) && preview !== 'required'
}

/** Returns the arguments of a call that must have the same values in other calls. */
function pinArguments(
  args: Readonly<Record<string, unknown>>,
  { free, budget }: GrantOffer,
): Record<string, unknown> {
  const isPinned = ([name]: [string, unknown]): boolean =>
    !free.includes(name) && name !== budget?.argument
  return Object.fromEntries(Object.entries(args).filter(isPinned))
}

/** Returns the largest sum of a budget. The policy's schema accepts only exact ones. */
export function exactMax({ max }: NonNullable<GrantOffer['budget']>): number {
  const unit = unitOf(max)
  return (unit && toExactAmount(max, unit)) ?? 0
}

const RANKS = { low: 1, medium: 2, high: Infinity } as const

function rank(severity: Approval['terms']['severity']): number {
  return severity === undefined ? 0 : RANKS[severity]
}

/** Ends a grant, in the audit record of the approval with which it was given. */
export function endGrant(
  { id, chat: { appName, principalId } }: Grant,
  end: { readonly revokedBy: string } | { readonly suspendedIn: string },
): NextNote {
  return (approval, now) => {
    const event =
      'revokedBy' in end
        ? ({ type: 'grant-revoked', grantId: id, by: end.revokedBy } as const)
        : ({ type: 'grant-suspended', grantId: id, chatId: end.suspendedIn } as const)
    const state = 'revokedBy' in end ? 'revoked' : 'suspended'
    const writes = { type: 'end', owner: { appName, principalId }, id, state } as const
    return { ...createTransition(approval, {}, { at: now, event }), writes }
  }
}

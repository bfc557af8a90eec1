import { createHash, timingSafeEqual } from 'node:crypto'

import type { Approval, Refusal } from '../../approvals/approval.ts'
import type { ApprovalLink } from '../../approvals/link.ts'
import type { Decider, Voter } from '../../approvals/deciders.ts'
import { hasVoted, isAsked, isCounted, isEligible, maySee } from '../../approvals/deciders.ts'
import type { DecisionMeans, NextNote } from '../../approvals/next-approval.ts'
import { createTransition, refuseState } from '../../approvals/next-approval.ts'

/** How many links of one approval may be open at the same time. An older one is dropped. */
const MAX_LINKS = 4

/** How often a link can be opened. Each time is an entry of the audit record. */
const MAX_OPENINGS = 10

/** No more links are created after so many transitions of an approval. */
const MAX_VERSION = 100

interface CreateLink {
  /** The principal who asks for it. */
  readonly by: Decider
  readonly link: Pick<ApprovalLink, 'id' | 'tokenHash' | 'as' | 'by'>
  /** How long the link is valid, in ms, at most until the deadline of the approval. */
  readonly expiresMs: number
}

/**
 * Records a new link. Its holder must be a person who may decide the current step: somebody else than the owner of the chat, the
 * creator and those who have voted, unless the creator may decide and passes on their own right.
 */
export function createLink({ by, link, expiresMs }: CreateLink): NextNote {
  return (approval, now) => {
    const { state, deadline, chat, links = [], version, terms } = approval
    if (!maySee(approval, by)) return { refused: 'unknown-approval' }
    if (state.name !== 'requested') return refuseState(state)
    if (now >= deadline) return { refused: 'expired' }
    const isOwnRight = link.as.id === by.id && isAsked(approval, by)
    const isOther = link.as.id !== by.id && link.as.id !== chat.principalId
    if (!(isOwnRight || isOther) || !isAsked(approval, link.as) || hasVoted(approval, link.as))
      return { refused: 'not-allowed' }
    // Each link is an entry of the audit record.
    if (version >= MAX_VERSION) return { refused: 'not-allowed' }
    const kept = links.filter(({ expiresAt }) => expiresAt > now).slice(1 - MAX_LINKS)
    const { id: linkId, as } = link
    const expiresAt = Math.min(deadline, now + expiresMs)
    const sharesRight = terms.chain.some((step) => isEligible(step, by) && isEligible(step, as))
    const created = { ...link, ...(sharesRight && { sharesRight }), expiresAt }
    if (isCounted(approval, { principalId: as.id, ...toVoter(created) }))
      return { refused: 'already-counted' }
    const event = { type: 'link-created', by: by.id, linkId, as, expiresAt } as const
    const change = { links: [...kept, created] }
    return { ...createTransition(approval, change, { at: now, event }), before: deadline }
  }
}

interface OpenLink {
  readonly token: string
  /** The hash of the key that only this browser has. A browser that opened the link before can no longer decide. */
  readonly keyHash: string
  /** The principal of the browser that opens it, if it has credentials. */
  readonly browser?: string
}

/** Opens a link, also if it was opened before. */
export function openLink({ token, keyHash, browser }: OpenLink): NextNote {
  return (approval, now) => {
    const { state, links = [] } = approval
    const link = findBySecret(approval, token, 'token')
    if (!link || link.expiresAt <= now || state.name !== 'requested') return INVALID
    const { browser: _before, openings = 0, ...rest } = link
    if (openings >= MAX_OPENINGS) return INVALID
    if (isInvolved(approval, link, browser)) return { refused: 'not-allowed' }
    const voter = { principalId: link.as.id, ...toVoter(link, browser) }
    if (isCounted(approval, voter)) return { refused: 'already-counted' }
    const known = browser === undefined ? {} : { browser }
    const opened = { ...rest, keyHash, openings: openings + 1, ...known }
    const event = { type: 'link-opened', linkId: link.id, ...known } as const
    const change = { links: links.map((each) => (each === link ? opened : each)) }
    const before = Math.min(approval.deadline, link.expiresAt)
    return { ...createTransition(approval, change, { at: now, event }), before }
  }
}

/** A decision by the holder of a link. `browser` is the principal of the holder's browser, if it has credentials. */
export function byLink(linkId: string, browser: string | undefined): DecisionMeans {
  return (approval, { by }, now) => {
    const { links = [] } = approval
    const link = links.find(({ id }) => id === linkId)
    const isUsable = link?.keyHash !== undefined && link.expiresAt > now && link.as.id === by.id
    if (!isUsable) return INVALID
    const holder = browser ?? link.browser
    if (isInvolved(approval, link, holder)) return { refused: 'not-allowed' }
    return {
      via: { linkId, createdBy: link.by },
      voter: toVoter(link, holder),
      // The link is used up in the same transition, so it cannot decide twice.
      change: { links: links.filter((each) => each !== link) },
    }
  }
}

/** One message for every reason, so that it does not reveal which links exist. */
export const BAD_LINK =
  'This link was used, was opened in another browser, has expired, or is not valid. Open it again, or ask the person who sent it for a new one.'

const INVALID: Refusal = { refused: 'invalid-means', message: BAD_LINK }

/** Returns the people for whom a vote by a link counts, besides its holder. */
function toVoter({ by, sharesRight }: ApprovalLink, browser?: string): Omit<Voter, 'principalId'> {
  return {
    linkBy: by,
    ...(sharesRight && { sharesRight }),
    ...(browser !== undefined && { browser }),
  }
}

/** Whether the principal of a browser takes part in an approval already, so that another person must use a link. */
function isInvolved(
  { chat, votes }: Approval,
  { by, as }: ApprovalLink,
  browser: string | undefined,
): boolean {
  if (browser === undefined || browser === as.id) return false
  return [chat.principalId, by, ...votes.map(({ principalId }) => principalId)].includes(browser)
}

/** Returns the hash of a secret of a link, as the ledger stores it. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/** Returns the link whose token is `secret`, or whose browser has `secret` as its key. */
export function findBySecret(
  { links = [] }: Pick<Approval, 'links'>,
  secret: string,
  kind: 'token' | 'key',
): ApprovalLink | undefined {
  const hash = Buffer.from(hashSecret(secret))
  return links.find(({ tokenHash, keyHash }) => {
    const known = kind === 'key' ? keyHash : tokenHash
    return known !== undefined && timingSafeEqual(Buffer.from(known), hash)
  })
}

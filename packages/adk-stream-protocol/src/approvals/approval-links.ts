import { createHash, timingSafeEqual } from 'node:crypto'

import type { Approval, ApprovalLink } from './approval.ts'
import {
  type Decider,
  hasVoted,
  isAsked,
  maySee,
  refuseState,
  type Transition,
  transition,
} from './next-approval.ts'
import type { Refusal } from './refusal.ts'

/** How many links of one approval may be open at the same time. An older one is dropped. */
const MAX_LINKS = 4

/** No more links are created after so many transitions of an approval. */
const MAX_VERSION = 100

/** Creates a link. `by` is the principal who asks for it. */
export interface CreateLink {
  readonly by: Decider
  readonly link: Omit<ApprovalLink, 'expiresAt'>
  /** How long the link is valid, in ms, at most until the deadline of the approval. */
  readonly expiresMs: number
}

/** Opens a link: replaces its token by a key that only this browser has. */
export interface OpenLink {
  readonly token: string
  readonly keyHash: string
  /** The principal of the browser that opens it, if it has credentials. */
  readonly browser?: string
}

/** Returns the hash of a secret of a link, as the ledger stores it. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/** Returns the link whose token (before it is opened) or key (after) is `secret`. */
export function findBySecret(
  { links = [] }: Pick<Approval, 'links'>,
  secret: string,
  kind: 'token' | 'key',
): ApprovalLink | undefined {
  const hash = Buffer.from(hashSecret(secret))
  return links.find(({ tokenHash, keyHash }) => {
    const known = kind === 'key' ? keyHash : keyHash === undefined ? tokenHash : undefined
    return known !== undefined && timingSafeEqual(Buffer.from(known), hash)
  })
}

/**
 * Records a new link. Its holder must be a person who may decide the current step: somebody else than the owner of the chat, the
 * creator and those who have voted, unless the creator may decide and passes on their own right.
 */
export function createLink(
  approval: Approval,
  { by, link, expiresMs }: CreateLink,
  now: number,
): Transition | Refusal {
  const { state, deadline, chat, links = [], version } = approval
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
  const event = { type: 'link-created', by: by.id, linkId, as, expiresAt } as const
  const change = { links: [...kept, { ...link, expiresAt }] }
  return { ...transition(approval, change, { at: now, event }), before: deadline }
}

/** Opens a link. A browser whose principal is the owner of the chat, the creator or a voter cannot open a link for somebody else. */
export function openLink(
  approval: Approval,
  { token, keyHash, browser }: OpenLink,
  now: number,
): Transition | Refusal {
  const { state, chat, votes, links = [] } = approval
  const link = findBySecret(approval, token, 'token')
  if (!link || link.expiresAt <= now || state.name !== 'requested')
    return { refused: 'link-invalid' }
  const involved = [chat.principalId, link.by, ...votes.map(({ principalId }) => principalId)]
  if (browser !== undefined && browser !== link.as.id && involved.includes(browser))
    return { refused: 'not-allowed' }
  const opened = links.map((each) => (each === link ? { ...each, keyHash } : each))
  const event = {
    type: 'link-opened',
    linkId: link.id,
    ...(browser !== undefined && { browser }),
  } as const
  const before = Math.min(approval.deadline, link.expiresAt)
  return { ...transition(approval, { links: opened }, { at: now, event }), before }
}

/** Returns the link that a decision uses, `invalid` if it cannot be used any more, or undefined if the decision uses none. */
export function findLink(
  { links = [] }: Approval,
  { linkId, by }: { readonly linkId?: string; readonly by: Decider },
  now: number,
): ApprovalLink | 'invalid' | undefined {
  if (linkId === undefined) return undefined
  const link = links.find(({ id }) => id === linkId)
  const isUsable = link?.keyHash !== undefined && link.expiresAt > now && link.as.id === by.id
  return isUsable ? link : 'invalid'
}

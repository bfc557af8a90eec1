import { createHash, timingSafeEqual } from 'node:crypto'

import type { Approval, ApprovalLink } from './approval.ts'

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
    // A link that was opened has no valid token any more.
    const unused = keyHash === undefined ? tokenHash : undefined
    const known = kind === 'key' ? keyHash : unused
    return known !== undefined && timingSafeEqual(Buffer.from(known), hash)
  })
}

/** Returns the link that a decision uses, `invalid` if it cannot be used any more, or undefined if the decision uses none. */
export function findLink(
  { links = [] }: Approval,
  { linkId, by }: { readonly linkId?: string; readonly by: { readonly id: string } },
  now: number,
): ApprovalLink | 'invalid' | undefined {
  if (linkId === undefined) return undefined
  const link = links.find(({ id }) => id === linkId)
  const isUsable = link?.keyHash !== undefined && link.expiresAt > now && link.as.id === by.id
  return isUsable ? link : 'invalid'
}

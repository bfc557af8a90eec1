/** The secret content of a link: which approval it opens, and its one-time token. */
export interface ApprovalLinkToken {
  readonly approvalId: string
  readonly token: string
}

/**
 * Returns the URL of a link: `base` with the token in the fragment. Browsers send the fragment to no server, neither in requests nor as
 * referrer, and programs that fetch a URL for a preview cannot open the link.
 */
export function toApprovalLinkUrl(base: string | URL, link: ApprovalLinkToken): string {
  const url = new URL(base)
  url.hash = new URLSearchParams({ approval: link.approvalId, token: link.token }).toString()
  return url.href
}

/** Reads the fragment of a URL. Returns undefined if it is not that of a link. */
export function readApprovalLinkUrl(hash: string): ApprovalLinkToken | undefined {
  const query = new URLSearchParams(hash.replace(/^#/, ''))
  const [approvalId, token] = [query.get('approval'), query.get('token')]
  return approvalId === null || token === null ? undefined : { approvalId, token }
}

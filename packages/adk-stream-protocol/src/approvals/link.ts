/** A link that lets one person decide an approval once. The ledger stores hashes of its secrets only. */
export interface ApprovalLink {
  /** The id of the link in the audit record. It is not secret. */
  readonly id: string
  /** SHA-256 of the token in the link. */
  readonly tokenHash: string
  /** SHA-256 of the key of the browser that opened the link last. Only that browser can decide. Absent until then. */
  readonly keyHash?: string
  /** The principal of that browser, if it has credentials. */
  readonly browser?: string
  /** How often the link was opened. Default 0. */
  readonly openings?: number
  /** As whom its holder decides. */
  readonly as: { readonly id: string; readonly roles: readonly string[] }
  /** The principal who created it. */
  readonly by: string
  /** Whether that principal may decide what the holder may decide. A vote by the link is then also the vote of its creator. */
  readonly sharesRight?: true
  readonly expiresAt: number
}

/** What the vote of a person with a link records about the link. */
export interface LinkVote {
  /** The principal who created the link with which this person was identified. Absent for a person with credentials. */
  readonly linkBy?: string
  /** Whether the creator of the link may decide what its holder decided. */
  readonly sharesRight?: true
  /** The principal of the browser that used the link, if it has credentials. */
  readonly browser?: string
}

/** The link with which a person was identified, and the principal who created it. */
export interface UsedLink {
  readonly linkId: string
  readonly createdBy: string
}

/** What happened to the links of an approval. */
export type LinkEvent =
  /** A link was created with which a person can decide once. */
  | {
      readonly type: 'link-created'
      readonly by: string
      readonly linkId: string
      /** As whom its holder decides. */
      readonly as: { readonly id: string; readonly roles: readonly string[] }
      readonly expiresAt: number
    }
  /** A person opened a link. The browser that opened it before can no longer decide. */
  | {
      readonly type: 'link-opened'
      readonly linkId: string
      /** The principal of the browser that opened it, if it had credentials. */
      readonly browser?: string
    }

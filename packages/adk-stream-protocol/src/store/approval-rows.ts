import type { ReadApproval } from '../approvals/approval-store.ts'
import type { Approval } from '../approvals/approval.ts'
import type { AuditEntry, AuditRecord } from '../approvals/audit-entry.ts'
import { currentStep } from '../approvals/deciders.ts'
import { decodeJson, encodeJson } from './stored-json.ts'

export interface ApprovalRow {
  readonly asked: string
  readonly moved: string
}

/** The time, and an approval if there is one. */
export interface TimedRow {
  readonly asked?: string | null
  readonly moved?: string | null
  readonly now: number
}

export interface AuditRow {
  readonly seq: number
  readonly entry: string
}

type Moved = Pick<Approval, 'votes' | 'links' | 'state' | 'version'>

type Asked = Omit<Approval, keyof Moved>

/** Encodes the fields that never change. */
export function encodeAsked({
  votes: _votes,
  links: _links,
  state: _state,
  version: _version,
  ...asked
}: Approval): string {
  return encodeJson(asked satisfies Asked)
}

/** Encodes the fields that transitions change. */
export function encodeMoved({ votes, links = [], state, version }: Approval): string {
  const moved: Moved = { votes, ...(links.length > 0 && { links }), state, version }
  return encodeJson(moved)
}

export function decodeTimed(row: TimedRow | undefined): ReadApproval {
  const { asked, moved, now = Number.NaN } = row ?? {}
  if (typeof asked !== 'string' || typeof moved !== 'string') return { approval: undefined, now }
  return { approval: decodeApproval({ asked, moved }), now }
}

export function decodeApproval({ asked, moved }: ApprovalRow): Approval {
  // `encodeAsked` and `encodeMoved` wrote the columns.
  return { ...(decodeJson(asked) as Asked), ...(decodeJson(moved) as Moved) }
}

export function decodeAudit({ seq, entry }: AuditRow): AuditRecord {
  // `encodeJson` wrote the entry.
  return { seq, ...(decodeJson(entry) as AuditEntry) }
}

/**
 * Returns the names under which a pending approval is listed: those who can decide it now, and those who can withdraw
 * their vote.
 */
export function deciderNames(approval: Approval): Set<string> {
  const { state, terms, votes } = approval
  if (state.name !== 'requested') return new Set()
  const step = terms.chain[currentStep(approval) ?? -1]
  const voters = votes.map(({ principalId }) => principalId)
  return new Set(namesOf([...(step?.principals ?? []), ...voters], step?.roles ?? []))
}

/** Returns the stored names of principals and roles. */
export function namesOf(principals: readonly string[], roles: readonly string[]): string[] {
  // As JSON, so that a text column returns any name unchanged.
  return [
    ...principals.map((name) => JSON.stringify(['principal', name])),
    ...roles.map((name) => JSON.stringify(['role', name])),
  ]
}

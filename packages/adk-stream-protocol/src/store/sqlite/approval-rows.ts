import type { Approval, ApprovalChat } from '../../approvals/approval.ts'
import type { AuditEntry, AuditRecord } from '../../approvals/audit-entry.ts'
import { currentStep } from '../../approvals/next-approval.ts'
import { checkName } from '../session-key.ts'
import { decodeJson, encodeJson } from '../stored-json.ts'
import type { ApprovalRow, AuditRow } from './approval-statements.ts'

/** The columns that say whose chat it is, in their order. */
export function chatColumns({ appName, principalId, chatId }: ApprovalChat): string[] {
  return [
    checkName('appName', appName),
    checkName('principalId', principalId),
    checkName('chatId', chatId),
  ]
}

type Moved = Pick<Approval, 'votes' | 'state' | 'version'>

type Asked = Omit<Approval, keyof Moved>

/** Writes what was fixed when the approval was asked. */
export function encodeAsked({
  votes: _votes,
  state: _state,
  version: _version,
  ...asked
}: Approval): string {
  return encodeJson(asked satisfies Asked)
}

/** Writes what moves while it lives. */
export function encodeMoved({ votes, state, version }: Approval): string {
  return encodeJson({ votes, state, version } satisfies Moved)
}

export function decodeApproval({ asked, moved }: ApprovalRow): Approval {
  // Written by `encodeAsked` and `encodeMoved`.
  return { ...(decodeJson(asked) as Asked), ...(decodeJson(moved) as Moved) }
}

export function decodeAudit({ seq, entry }: AuditRow): AuditRecord {
  // Written with `encodeJson` from an entry.
  return { seq, ...(decodeJson(entry) as AuditEntry) }
}

/** The names by which a pending approval is found: of those who can decide it now, and of those who can withdraw their vote. */
export function deciderNames(approval: Approval): Set<string> {
  const { state, terms, votes } = approval
  if (state.name !== 'requested') return new Set()
  const step = terms.chain[currentStep(approval) ?? -1]
  const voters = votes.map(({ principalId }) => principalId)
  return new Set(namesOf([...(step?.principals ?? []), ...voters], step?.roles ?? []))
}

/** Principals and roles as the names under which deciders are stored. */
export function namesOf(principals: readonly string[], roles: readonly string[]): string[] {
  // As JSON, so that any name is text that a column gives back unchanged.
  return [
    ...principals.map((name) => JSON.stringify(['principal', name])),
    ...roles.map((name) => JSON.stringify(['role', name])),
  ]
}

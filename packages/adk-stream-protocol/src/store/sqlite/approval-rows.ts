import type { Approval, ApprovalChat } from '../../approvals/approval.ts'
import type { AuditEvent, AuditRecord } from '../../approvals/audit-entry.ts'
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

type Asked = Pick<Approval, 'messageId' | 'toolName' | 'args' | 'digest' | 'terms' | 'requestedAt'>

type Moved = Pick<Approval, 'votes' | 'state'>

/** Writes what was fixed when the approval was asked. */
export function encodeAsked(approval: Approval): string {
  const { messageId, toolName, args, digest, terms, requestedAt } = approval
  return encodeJson({ messageId, toolName, args, digest, terms, requestedAt } satisfies Asked)
}

/** Writes what moves while it lives. */
export function encodeMoved({ votes, state }: Approval): string {
  return encodeJson({ votes, state } satisfies Moved)
}

export function decodeApproval(row: ApprovalRow): Approval {
  return {
    id: row.id,
    chat: { appName: row.app_name, principalId: row.principal_id, chatId: row.chat_id },
    toolCallId: row.tool_call_id,
    // Written by `encodeAsked`.
    ...(decodeJson(row.asked) as Asked),
    deadline: row.deadline,
    version: row.version,
    // Written by `encodeMoved`.
    ...(decodeJson(row.moved) as Moved),
  }
}

export function decodeAudit(row: AuditRow): AuditRecord {
  return {
    seq: row.seq,
    approvalId: row.approval_id,
    chat: { appName: row.app_name, principalId: row.principal_id, chatId: row.chat_id },
    version: row.version,
    at: row.at,
    // Written by `#appendAudit`.
    event: decodeJson(row.event) as AuditEvent,
  }
}

/** Everyone whom some step names, principals and roles apart. */
export function deciderNames({ terms }: Approval): Set<string> {
  return new Set(terms.chain.flatMap((step) => namesOf(step.principals, step.roles)))
}

/** Principals and roles as the names under which deciders are stored. */
export function namesOf(principals: readonly string[], roles: readonly string[]): string[] {
  // As JSON, so that any name is text that a column gives back unchanged.
  return [
    ...principals.map((name) => JSON.stringify(['principal', name])),
    ...roles.map((name) => JSON.stringify(['role', name])),
  ]
}

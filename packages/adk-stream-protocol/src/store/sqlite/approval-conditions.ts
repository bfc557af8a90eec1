import type { ApprovalStateName } from '../../approvals/approval.ts'
import type { ApprovalFilter, AuditFilter, VisibleFilter } from '../../approvals/approval-store.ts'
import { checkName, isStorable } from '../session-key.ts'
import { encodeJson } from '../stored-json.ts'
import { namesOf } from '../approval-rows.ts'
import { chatColumns } from '../chat-rows.ts'
import type { SqlValue } from './connection.ts'

/** An SQL condition with the values of its parameters. */
export interface Conditions {
  readonly conditions: string
  readonly values: SqlValue[]
}

/** Returns the SQL condition of a list filter. */
export function listConditions(filter: ApprovalFilter): Conditions {
  const { appName, principalId, chat, states, kind, waitsFor, after } = filter
  // `+` prevents SQLite from reading all approvals of the application when few of them wait for one person.
  const app = waitsFor === undefined ? 'app_name = ?' : '+app_name = ?'
  return joinConditions([
    appName !== undefined && [app, checkName('appName', appName)],
    principalId !== undefined && ['principal_id = ?', checkName('principalId', principalId)],
    chat !== undefined && [CHAT, ...chatColumns(chat)],
    states !== undefined && [inStates(states)],
    // A literal, like the states.
    kind !== undefined && ["asked ->> '$.terms.kind' = 'elicitation'"],
    waitsFor !== undefined && [
      // Repeats the application, because the index of pending approvals starts with it.
      `((state = 'requested' AND ${appName === undefined ? '' : 'app_name = ? AND '}principal_id = ?) OR ${NAMED})`,
      ...(appName === undefined ? [] : [appName]),
      checkName('principalId', waitsFor.id),
      encodeJson(namesOf([waitsFor.id], waitsFor.roles)),
    ],
    after !== undefined &&
      isStorable(after) && ['seq > coalesce((SELECT seq FROM approvals WHERE id = ?), 0)', after],
  ])
}

/** Returns the query for approvals that a principal may see. For each name of the principal, it reads the newest of them only. */
export function visibleQuery(filter: VisibleFilter): Conditions {
  const { appName, reader, states, toolName, requester, after, limit } = filter
  const app = checkName('appName', appName)
  const { conditions, values } = joinConditions([
    ['reader.app_name = ?', app],
    after !== undefined && ['reader.seq < (SELECT seq FROM approvals WHERE id = ?)', after],
    requester !== undefined && ['reader.principal_id = ?', requester],
    toolName !== undefined && ['reader.tool = ?', encodeJson(toolName)],
    states !== undefined && [inStates(states)],
  ])
  return {
    conditions: `seq IN (
      SELECT listed.seq FROM json_each(?) AS names JOIN approval_readers AS listed
      ON listed.app_name = ? AND listed.name = names.value AND listed.seq IN (
        SELECT reader.seq FROM approval_readers AS reader JOIN approvals USING (seq)
        WHERE reader.name = names.value AND ${conditions} ORDER BY reader.seq DESC LIMIT ?))
      ORDER BY seq DESC LIMIT ?`,
    values: [encodeJson(namesOf([reader.id], reader.roles)), app, ...values, limit, limit],
  }
}

// Only pending approvals have rows in this table.
const NAMED = `id IN (
  SELECT approval_id FROM approval_deciders WHERE name IN (SELECT value FROM json_each(?)))`

function inStates(states: readonly ApprovalStateName[]): string {
  // Literals with `=`, because SQLite uses a partial index only if the statement repeats its condition. The literals
  // are our own.
  const terms = STATES.filter((name) => states.includes(name)).map((name) => `state = '${name}'`)
  return terms.length === 0 ? 'FALSE' : `(${terms.join(' OR ')})`
}

const STATES = [
  'requested',
  'approved',
  'denied',
  'expired',
  'cancelled',
  'executing',
  'succeeded',
  'failed',
  'unknown',
] as const satisfies readonly ApprovalStateName[]

/** Returns the SQL condition of an audit filter. */
export function auditConditions({ appName, approvalId, chat }: AuditFilter): Conditions {
  return joinConditions([
    appName !== undefined && ['app_name = ?', checkName('appName', appName)],
    approvalId !== undefined && ['approval_id = ?', checkName('approvalId', approvalId)],
    chat !== undefined && [CHAT, ...chatColumns(chat)],
  ])
}

const CHAT = 'app_name = ? AND principal_id = ? AND chat_id = ?'

function joinConditions(
  conditions: readonly (false | readonly [condition: string, ...values: string[]])[],
): Conditions {
  const kept = conditions.filter((condition) => condition !== false)
  return {
    conditions: kept.map(([condition]) => condition).join(' AND ') || 'TRUE',
    values: kept.flatMap(([, ...values]) => values),
  }
}

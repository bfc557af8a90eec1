import type {
  ApprovalFilter,
  AuditFilter,
  AuditHead,
  VisibleFilter,
} from '../../approvals/approval-store.ts'
import type { ApprovalStateName } from '../../approvals/approval.ts'
import type { AuditEntry } from '../../approvals/audit-entry.ts'
import type { AuditReader, ChainedRow } from '../audit-chain.ts'
import { GENESIS, hashEntry } from '../audit-chain.ts'
import type { ApprovalRow, OwnLockRow, TimedRow, WorkerRow } from '../rows.ts'
import { joinConditions, named, namesOf, ofChat, selectAudit, toOwnLiteral } from '../rows.ts'
import { checkName, isStorable } from '../keys.ts'
import { encodeJson } from '../stored-json.ts'
import type { Connection, SqlValue, Statement } from './connection.ts'
import { SQLITE_FEATURES } from '../features.ts'

/** The clock of SQLite in whole ms, which is its precision. */
export const DATABASE_CLOCK = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)"

export type ApprovalStatements = ReturnType<typeof prepareApprovalStatements>

/** Prepares all statements of the approval store. `clock` is an SQL expression. Lease times are parameters. */
export function prepareApprovalStatements(connection: Connection, clock: string) {
  return {
    ...prepareTransitions(connection, clock),
    ...prepareReads(connection, clock),
    ...prepareLeases(connection),
  }
}

function prepareTransitions(connection: Connection, clock: string) {
  return {
    countPending: connection.prepare<{ of_principal: number; of_chat: number }>(`
      SELECT count(*) AS of_principal, coalesce(sum(chat_id = ?3), 0) AS of_chat FROM approvals
      WHERE state = 'requested' AND app_name = ?1 AND principal_id = ?2`),
    insert: connection.prepare(`
      INSERT INTO approvals (app_name, principal_id, chat_id, tool_call_id, id, deadline, version, state, asked, moved)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),
    insertDecider: connection.prepare(
      'INSERT INTO approval_deciders (name, approval_id) VALUES (?, ?)',
    ),
    replace: connection.prepare(`
      UPDATE approvals SET version = ?2, state = ?3, worker = ?4, started_at = ?5, unreported_since = ?6, moved = ?7
      WHERE id = ?1 AND version = ?9 AND (?8 IS NULL OR ${clock} < ?8)`),
    isSilent: connection.prepare<{ silent: number }>(`
      SELECT 1 AS silent FROM approvals WHERE id = ?1 AND worker = ?2 AND started_at <= ?3 AND NOT EXISTS (
        SELECT 1 FROM workers WHERE workers.worker = ?2 AND beat_at > ?3)`),
    markReported: connection.prepare(`
      UPDATE approvals SET unreported_since = NULL
      WHERE app_name = ? AND principal_id = ? AND chat_id = ? AND tool_call_id = ? AND state <> 'approved'`),
    markAllReported: connection.prepare(`
      UPDATE approvals SET unreported_since = NULL
      WHERE app_name = ? AND principal_id = ? AND chat_id = ? AND unreported_since IS NOT NULL`),
    deleteDeciders: connection.prepare('DELETE FROM approval_deciders WHERE approval_id = ?'),
    appendAudit: prepareAppend(connection),
  }
}

function prepareReads(connection: Connection, clock: string) {
  return {
    now: connection.prepare<{ now: number }>(`SELECT ${clock} AS now`),
    countAllPending: connection.prepare<{ pending: number }>(`
      SELECT count(*) AS pending FROM (
        SELECT 1 FROM approvals WHERE state = 'requested' AND app_name = ? LIMIT ?)`),
    lastSeq: connection.prepare<{ seq: number }>(
      'SELECT seq FROM approval_audit ORDER BY seq DESC LIMIT 1',
    ),
    get: selectApprovals(connection, 'id = ?'),
    getWithTime: connection.prepare<TimedRow>(
      `SELECT asked, moved, now FROM (SELECT ${clock} AS now) LEFT JOIN approvals ON id = ?`,
    ),
    findByCall: selectApprovals(
      connection,
      'app_name = ? AND principal_id = ? AND chat_id = ? AND tool_call_id = ?',
    ),
    findOpen: selectApprovals(
      connection,
      `app_name = ? AND principal_id = ? AND chat_id = ? AND state IN ('requested', 'approved') ORDER BY seq`,
    ),
    due: selectApprovals(
      connection,
      `state = 'requested' AND deadline <= ${clock} ORDER BY deadline, seq LIMIT ?`,
    ),
    unreported: selectApprovals(
      connection,
      `app_name = ?1 AND unreported_since IS NOT NULL AND (state = 'approved' OR unreported_since <= ?2)
      AND NOT EXISTS (
        SELECT 1 FROM chat_locks LEFT JOIN workers USING (worker)
        WHERE chat_locks.app_name = approvals.app_name AND chat_locks.principal_id = approvals.principal_id
        AND chat_locks.chat_id = approvals.chat_id AND max(locked_at, coalesce(beat_at, 0)) > ?2)
      AND id NOT IN (SELECT value FROM json_each(?3))
      ORDER BY row_number() OVER (PARTITION BY principal_id ORDER BY seq), seq LIMIT ?4`,
    ),
    stale: selectApprovals(
      connection,
      `state = 'executing' AND started_at <= ?1 AND NOT EXISTS (
        SELECT 1 FROM workers WHERE workers.worker = approvals.worker AND beat_at > ?1)
      ORDER BY seq`,
    ),
  }
}

function prepareLeases(connection: Connection) {
  return {
    heartbeat: connection.prepare(`
      INSERT INTO workers (worker, beat_at) VALUES (?1, ?2)
      ON CONFLICT (worker) DO UPDATE SET beat_at = excluded.beat_at`),
    // A negative `beat_at` is the time at which the worker ended its lease.
    endLease: connection.prepare(`
      INSERT INTO workers (worker, beat_at) VALUES (?1, -?2)
      ON CONFLICT (worker) DO UPDATE SET beat_at = excluded.beat_at`),
    hasEnded: connection.prepare<{ ended: number }>(
      'SELECT 1 AS ended FROM workers WHERE worker = ? AND beat_at < 0',
    ),
    hasLeases: connection.prepare<{ found: number }>(`
      SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM chat_locks)
        OR EXISTS (SELECT 1 FROM approvals WHERE state = 'executing')
        OR EXISTS (SELECT 1 FROM approvals WHERE unreported_since IS NOT NULL)
        ${SQLITE_FEATURES.flatMap(({ leased }) => (leased === undefined ? [] : `OR EXISTS (SELECT 1 FROM ${leased})`)).join(' ')}`),
    // Leases are far shorter than a day, so these have expired.
    forgetWorkers: connection.prepare('DELETE FROM workers WHERE abs(beat_at) < ? - 86400000'),
    lockChat: connection.prepare(`
      INSERT INTO chat_locks (app_name, principal_id, chat_id, worker, token, background, locked_at)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      ON CONFLICT DO UPDATE SET worker = excluded.worker, token = excluded.token, background = excluded.background,
        locked_at = excluded.locked_at
      WHERE worker = excluded.worker OR locked_at <= ?7 - ?8 AND NOT EXISTS (
        SELECT 1 FROM workers WHERE workers.worker = chat_locks.worker AND beat_at > ?7 - ?8)`),
    findLockHolder: connection.prepare<{ token: string; background: number; sign_at: number }>(`
      SELECT token, background, max(locked_at, coalesce(beat_at, 0)) AS sign_at
      FROM chat_locks LEFT JOIN workers USING (worker)
      WHERE app_name = ? AND principal_id = ? AND chat_id = ?`),
    listLocks: connection.prepare<OwnLockRow>(
      'SELECT app_name, principal_id, chat_id, token FROM chat_locks WHERE worker = ?',
    ),
    listLockedByOthers: connection.prepare<{ chat_id: string }>(`
      SELECT chat_id FROM chat_locks LEFT JOIN workers USING (worker)
      WHERE app_name = ?1 AND principal_id = ?2 AND worker <> ?3 AND max(locked_at, coalesce(beat_at, 0)) > ?4`),
    listWorkers: connection.prepare<WorkerRow>(`
      SELECT workers.worker, beat_at, app_name, principal_id, chat_id, background, locked_at
      FROM workers LEFT JOIN chat_locks USING (worker)
      UNION ALL
      SELECT worker, NULL, app_name, principal_id, chat_id, background, locked_at FROM chat_locks
      WHERE worker NOT IN (SELECT worker FROM workers)
      ORDER BY 1, 7`),
    unlockChat: connection.prepare(`
      DELETE FROM chat_locks WHERE app_name = ? AND principal_id = ? AND chat_id = ? AND token = ?`),
  }
}

/** Prepares a query for approvals that meet a condition. */
export function selectApprovals(connection: Connection, condition: string): Statement<ApprovalRow> {
  return connection.prepare(`SELECT asked, moved FROM approvals WHERE ${condition}`)
}

/** An SQL condition with the values of its parameters. */
interface Conditions {
  readonly conditions: string
  readonly values: SqlValue[]
}

/** Returns the SQL condition of a list filter. */
export function listConditions(filter: ApprovalFilter): Conditions {
  const { appName, principalId, chat, states, kind, waitsFor, after } = filter
  // `+` prevents SQLite from reading all approvals of the application when few of them wait for one person.
  const app = waitsFor === undefined ? 'app_name' : '+app_name'
  return joinConditions([
    named(app, 'appName', appName),
    named('principal_id', 'principalId', principalId),
    ofChat(chat),
    states !== undefined && [inStates(states)],
    // A literal, like the states.
    kind !== undefined && [`asked ->> '$.terms.kind' = '${toOwnLiteral(kind)}'`],
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
export function auditConditions(filter: AuditFilter): Conditions {
  return joinConditions(selectAudit(filter))
}

/** Prepares a function that appends entries within a write transaction. */
function prepareAppend(connection: Connection) {
  const readHead = connection.prepare<AuditHeadRow>(SELECT_HEAD)
  /** By the number of entries. */
  const inserts = new Map<number, Statement<never>>()
  /** The newest entry that this process knows. Other processes append entries, too. */
  let head: AuditHeadRow = { seq: null, hash: null }
  return (entries: readonly AuditEntry[]): void => {
    const insert = inserts.get(entries.length) ?? prepareInsert(connection, entries.length)
    inserts.set(entries.length, insert)
    const encoded = entries.map((added) => {
      const { approvalId, version } = added
      return { approvalId, version, entry: encodeJson(added) }
    })
    for (;;) {
      const { values, last } = chainEntries(head, encoded)
      if (insert.run(...values, head.seq, head.hash) > 0) {
        head = last
        return
      }
      head = readHead.rows()[0] ?? head
    }
  }
}

/** Prepares the insertion of entries. It inserts none if the newest entry is not the one that the last two values describe. */
function prepareInsert(connection: Connection, count: number): Statement<never> {
  const rows = Array.from({ length: count }, () => '(?, ?, ?, ?, ?)').join(', ')
  return connection.prepare(`
    INSERT INTO approval_audit (seq, approval_id, version, entry, hash)
    SELECT * FROM (VALUES ${rows}) WHERE (${SELECT_COUNTER}) IS ? AND (${SELECT_LAST_HASH}) IS ?`)
}

/** Returns the rows of entries after a head as one list, and the head after them. */
function chainEntries(
  { seq, hash }: AuditHeadRow,
  entries: readonly (Pick<AuditEntry, 'approvalId' | 'version'> & { readonly entry: string })[],
): { readonly values: SqlValue[]; readonly last: AuditHead } {
  const values: SqlValue[] = []
  let last: AuditHead = { seq: seq ?? 0, hash: hash ?? GENESIS }
  for (const { approvalId, version, entry } of entries) {
    const row = { seq: last.seq + 1, approval_id: approvalId, version, entry }
    last = { seq: row.seq, hash: hashEntry(last.hash, row) }
    values.push(row.seq, approvalId, version, entry, last.hash)
  }
  return { values, last }
}

/** Reads the audit record of a database, for `verifyChain`. */
export function auditReader(connection: Connection): AuditReader {
  const counter = connection.prepare<{ seq: number }>(SELECT_COUNTER)
  const page = connection.prepare<ChainedRow>(SELECT_PAGE)
  const cut = connection.prepare<AuditHead>(SELECT_CUT)
  return {
    readCounter: async () => (await counter.select())[0]?.seq ?? 0,
    readPage: (after) => page.select(after, PAGE),
    readCut: async () => (await cut.select())[0],
  }
}

const PAGE = 200

/** The number of the last entry that was ever written, and the hash of the last one that is stored. */
export interface AuditHeadRow {
  readonly seq: number | null
  readonly hash: string | null
}

export const SELECT_CUT = 'SELECT seq, hash FROM audit_cut'
export const INSERT_ENTRY =
  'INSERT INTO approval_audit (seq, approval_id, version, entry, hash) VALUES (?, ?, ?, ?, ?)'
const SELECT_LAST_HASH = 'SELECT hash FROM approval_audit ORDER BY seq DESC LIMIT 1'
// SQLite keeps its counter when rows are removed.
const SELECT_COUNTER = "SELECT seq FROM sqlite_sequence WHERE name = 'approval_audit'"
export const SELECT_HEAD = `SELECT (${SELECT_COUNTER}) AS seq, (${SELECT_LAST_HASH}) AS hash`
const SELECT_PAGE = `
  SELECT seq, approval_id, version, entry, hash FROM approval_audit WHERE seq > ? ORDER BY seq LIMIT ?`

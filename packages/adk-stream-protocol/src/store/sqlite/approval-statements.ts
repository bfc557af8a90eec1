import type { ApprovalRow, TimedRow } from '../approval-rows.ts'
import type { WorkerRow } from '../chat-rows.ts'
import { prepareAppend } from './audit-chain.ts'
import type { Connection, Statement } from './connection.ts'

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
      UPDATE approvals SET version = ?2, state = ?3, worker = ?4, started_at = ?5, untold_since = ?6, moved = ?7
      WHERE id = ?1 AND version = ?9 AND (?8 IS NULL OR ${clock} < ?8)`),
    isSilent: connection.prepare<{ silent: number }>(`
      SELECT 1 AS silent FROM approvals WHERE id = ?1 AND worker = ?2 AND started_at <= ?3 AND NOT EXISTS (
        SELECT 1 FROM workers WHERE workers.worker = ?2 AND beat_at > ?3)`),
    markReported: connection.prepare(`
      UPDATE approvals SET untold_since = NULL
      WHERE app_name = ? AND principal_id = ? AND chat_id = ? AND tool_call_id = ? AND state <> 'approved'`),
    markAllReported: connection.prepare(`
      UPDATE approvals SET untold_since = NULL
      WHERE app_name = ? AND principal_id = ? AND chat_id = ? AND untold_since IS NOT NULL`),
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
      `app_name = ?1 AND untold_since IS NOT NULL AND (state = 'approved' OR untold_since <= ?2)
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

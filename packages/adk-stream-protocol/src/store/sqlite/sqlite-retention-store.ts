import {
  ERASED,
  type ErasedEntry,
  findCut,
  GENESIS,
  type Removal,
  removalRow,
  type TimedEntry,
} from '../audit-chain.ts'
import type { OrphanRow, UnusedRow } from '../rows.ts'
import {
  decodeOrphans,
  decodeUnused,
  hasChat,
  LOCK_AGE_MS,
  ofAppOrOpenRun,
  orphanValues,
  sameChat,
} from '../rows.ts'
import { chatColumns, checkName, ownerColumns } from '../keys.ts'
import type { RetentionStore } from '../store.ts'
import { type AuditHeadRow, INSERT_ENTRY, SELECT_CUT, SELECT_HEAD } from './approval-sql.ts'
import { SQLITE_FEATURES } from '../features.ts'
import type { Connection } from './connection.ts'
import type { LeaseClock } from './leases.ts'

/** Removes data from SQLite. Each method is one short transaction. `clock` is the SQL expression of the clock for ages, in ms. */
export function sqliteRetention(
  connection: Connection,
  clock: string,
  leaseNow: LeaseClock,
): RetentionStore {
  const statements = prepareStatements(connection, clock)
  const now = (): number => statements.now.rows()[0]?.now ?? Number.NaN
  return {
    async listUnused({ appName, unusedMs, leaseMs, limit }) {
      const app = appName === undefined ? null : checkName('appName', appName)
      const rows = await connection.read(() =>
        statements.listUnused.rows(app, now() - unusedMs, leaseNow() - leaseMs, limit),
      )
      return rows.map(decodeUnused)
    },
    async removeChat(chat, { unusedMs, leaseMs }) {
      const key = chatColumns(chat)
      return connection.write(() => {
        const before = unusedMs === undefined ? null : now() - unusedMs
        if (statements.isKept.rows(...key, leaseNow() - leaseMs, before).length > 0) return false
        for (const remove of statements.removeChat) remove.run(...key)
        return true
      })
    },
    async listOrphans(page) {
      return decodeOrphans(page, await statements.listOrphans.select(...orphanValues(page)))
    },
    async removeOrphan(chat) {
      await connection.write(() => statements.removeOrphan.run(...chatColumns(chat)))
    },
    countOldAudit: (olderThanMs) => countOldAudit(statements, olderThanMs),
    async removeAudit({ olderThanMs, limit }) {
      return connection.write(() => {
        const at = now()
        const rows = statements.auditPage.rows(0, limit)
        const cut = findCut(rows, { before: at - olderThanMs, limit })
        if (!cut) return 0
        const { seq, hash } = cut
        recordRemoval(statements, { at, removed: { seq, hash } })
        statements.putCut.run(seq, hash)
        statements.removeAudit.run(seq)
        return cut.count
      })
    },
    async removeApprovals(limit) {
      return connection.write(() => {
        const [next] = statements.firstRecorded.rows()
        return statements.removeApprovals.run(next?.seq ?? Number.MAX_SAFE_INTEGER, limit)
      })
    },
    // The write-ahead log contains what was removed from the file.
    overwriteRemoved: () => connection.emptyLog(),
    async removeLocks() {
      await connection.write(
        () => statements.removeLocks.run(leaseNow() - LOCK_AGE_MS),
        'process-death',
      )
    },
    async removeOwner(owner) {
      const key = ownerColumns(owner)
      await connection.write(() => {
        for (const remove of statements.removeOwner) remove.run(...key)
      })
    },
    async eraseApprovals(owner, limit) {
      const key = ownerColumns(owner)
      return connection.write(() => {
        const ids = statements.endedOf.rows(...key, limit).map(({ id }) => id)
        const erased = ids.flatMap((id) => statements.linksOf.rows(id))
        if (erased.length > 0) recordRemoval(statements, { at: now(), erased })
        for (const id of ids) {
          statements.erase.run(id)
          statements.removeApproval.run(id)
        }
        return ids.length
      })
    },
  }
}

async function countOldAudit(statements: Statements, olderThanMs: number): Promise<number> {
  let count = 0
  for (let after = 0; ;) {
    const rows = await statements.auditPage.select(after, PAGE)
    const [time] = await statements.now.select()
    const before = (time?.now ?? Number.NaN) - olderThanMs
    const end = rows.findIndex(({ at }) => at >= before)
    count += end === -1 ? rows.length : end
    if (end !== -1 || rows.length < PAGE) return count
    after = rows.at(-1)?.seq ?? after
  }
}

/** Appends an audit entry that records a removal. */
function recordRemoval(statements: Statements, removal: Removal): void {
  const [last] = statements.head.rows()
  const head = { seq: last?.seq ?? 0, hash: last?.hash ?? GENESIS }
  const { seq, approval_id, version, entry, hash } = removalRow(head, removal)
  statements.append.run(seq, approval_id, version, entry, hash)
}

const PAGE = 500

type Statements = ReturnType<typeof prepareStatements>

function prepareStatements(connection: Connection, clock: string) {
  const inChat = 'app_name = ?1 AND principal_id = ?2 AND chat_id = ?3'
  // The lock of a turn or of a live session.
  const locksChat = `app_name ${ofAppOrOpenRun('?1')} AND principal_id = ?2 AND chat_id = ?3`
  const isOpen = `(state IN ('requested', 'approved', 'executing') OR unreported_since IS NOT NULL)`
  const lease = 'max(locked_at, coalesce(beat_at, 0))'
  return {
    now: connection.prepare<{ now: number }>(`SELECT ${clock} AS now`),
    // The inner query reads only the index.
    listUnused: connection.prepare<UnusedRow>(`
      SELECT app_name, user_id, session_id FROM sessions
      WHERE session IN (
        SELECT session FROM sessions INDEXED BY sessions_updated
        WHERE (?1 IS NULL OR app_name = ?1) AND updated_at < ?2)
      AND created_at < ?2
      AND NOT EXISTS (SELECT 1 FROM approvals WHERE ${sameChat('approvals')} AND ${isOpen})
      ${KEEPING_TABLES.map((table) => `AND NOT EXISTS (SELECT 1 FROM ${table} WHERE ${sameChat(table)} AND deadline > ?2)`).join(' ')}
      AND NOT EXISTS (
        SELECT 1 FROM chat_locks LEFT JOIN workers USING (worker)
        WHERE ${sameChat('chat_locks', ofAppOrOpenRun('sessions.app_name'))} AND ${lease} > ?3)
      ORDER BY updated_at LIMIT ?4`),
    isKept: connection.prepare<{ kept: number }>(`
      SELECT 1 AS kept WHERE
        EXISTS (SELECT 1 FROM chat_locks LEFT JOIN workers USING (worker) WHERE ${locksChat} AND ${lease} > ?4)
        OR EXISTS (SELECT 1 FROM approvals WHERE ${inChat} AND ${isOpen})
        OR ?5 IS NOT NULL AND (
          NOT EXISTS (
            SELECT 1 FROM sessions
            WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3 AND max(updated_at, created_at) < ?5)
          ${KEEPING_TABLES.map((table) => `OR EXISTS (SELECT 1 FROM ${table} WHERE ${inChat} AND deadline > ?5)`).join(' ')})`),
    removeChat: [
      connection.prepare(
        'DELETE FROM sessions WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3',
      ),
      ...['chats', ...SQLITE_FEATURES.flatMap(({ ofChats = [] }) => ofChats)].map((table) =>
        connection.prepare(`DELETE FROM ${table} WHERE ${inChat}`),
      ),
      connection.prepare(`DELETE FROM chat_locks WHERE ${locksChat}`),
    ],
    listOrphans: connection.prepare<OrphanRow>(`
      SELECT principal_id, chat_id, NOT ${hasChat()} AS is_orphan FROM chats
      WHERE app_name = ?1 AND (principal_id, chat_id) > (?2, ?3) ORDER BY principal_id, chat_id LIMIT ?4`),
    removeOrphan: connection.prepare(`DELETE FROM chats WHERE ${inChat} AND NOT ${hasChat()}`),
    auditPage: connection.prepare<TimedEntry>(`
      SELECT audit.seq, approval_id, hash,
        CASE WHEN entry = '${ERASED}' THEN 0 ELSE json_extract(entry, '$.at') END AS at
      FROM approval_audit audit WHERE audit.seq > ? ORDER BY audit.seq LIMIT ?`),
    putCut: connection.prepare(`
      INSERT INTO audit_cut (single, seq, hash) VALUES (1, ?, ?)
      ON CONFLICT DO UPDATE SET seq = excluded.seq, hash = excluded.hash`),
    removeAudit: connection.prepare('DELETE FROM approval_audit WHERE seq <= ?'),
    // Approvals have the order of their first entries.
    firstRecorded: connection.prepare<{ seq: number }>(`
      SELECT approvals.seq FROM approval_audit audit CROSS JOIN approvals ON approvals.id = approval_id
      WHERE audit.version = 0 ORDER BY audit.seq LIMIT 1`),
    removeApprovals: connection.prepare(`
      DELETE FROM approvals WHERE seq IN (
        SELECT seq FROM approvals WHERE seq < ?1 AND NOT ${isOpen}
        AND NOT EXISTS (SELECT 1 FROM approval_audit WHERE approval_id = approvals.id) ORDER BY seq LIMIT ?2)`),
    removeLocks: connection.prepare(`
      DELETE FROM chat_locks WHERE locked_at < ?1
      AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.worker = chat_locks.worker AND beat_at >= ?1)`),
    removeOwner: [
      connection.prepare('DELETE FROM user_states WHERE app_name = ?1 AND user_id = ?2'),
      ...OWNED_TABLES.map((table) =>
        connection.prepare(`DELETE FROM ${table} WHERE app_name = ?1 AND principal_id = ?2`),
      ),
    ],
    endedOf: connection.prepare<{ id: string }>(`
      SELECT id FROM approvals WHERE app_name = ? AND principal_id = ? AND NOT ${isOpen} LIMIT ?`),
    linksOf: connection.prepare<ErasedEntry>(`
      SELECT audit.seq, audit.hash, coalesce(
        (SELECT hash FROM approval_audit before WHERE before.seq < audit.seq ORDER BY before.seq DESC LIMIT 1),
        (${SELECT_CUT.replace('seq, hash', 'hash')}), '') AS previous
      FROM approval_audit audit WHERE approval_id = ? ORDER BY audit.seq`),
    erase: connection.prepare(
      `UPDATE approval_audit SET entry = '${ERASED}' WHERE approval_id = ?`,
    ),
    removeApproval: connection.prepare('DELETE FROM approvals WHERE id = ?'),
    head: connection.prepare<AuditHeadRow>(SELECT_HEAD),
    append: connection.prepare(INSERT_ENTRY),
  }
}

/** The tables with rows of a principal, other than sessions and approvals. */
/** The tables whose rows keep a chat until their deadline. */
const KEEPING_TABLES = SQLITE_FEATURES.flatMap(({ keepsChats }) => keepsChats ?? [])

const OWNED_TABLES = ['chats', ...SQLITE_FEATURES.flatMap(({ owned }) => owned)]

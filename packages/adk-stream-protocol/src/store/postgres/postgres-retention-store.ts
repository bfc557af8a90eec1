import { randomUUID } from 'node:crypto'

import type { AuditHead } from '../../approvals/approval-store.ts'
import { OPEN_RUN_LOCK } from '../../locks/lock-names.ts'
import {
  ERASED,
  type ErasedEntry,
  findCut,
  GENESIS,
  type Removal,
  removalRow,
  type TimedEntry,
} from '../audit-chain.ts'
import type { SessionKey } from '../keys.ts'
import { chatColumns, checkName, ownerColumns } from '../keys.ts'
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
import type { RetentionStore } from '../store.ts'
import { approvalSql } from './approval-sql.ts'
import { POSTGRES_FEATURES } from '../features.ts'
import type { Clocks, Database, RunStatement } from './database.ts'

/** Removes data from PostgreSQL. Each method is one short transaction. `schema` is a quoted name. */
export function postgresRetention(
  database: Database,
  schema: string,
  clocks: Clocks,
): RetentionStore {
  const sql = retentionSql(schema, clocks)
  const { lockChat } = approvalSql(schema, clocks)
  return {
    async listUnused({ appName, unusedMs, leaseMs, limit }) {
      const app = appName === undefined ? null : checkName('appName', appName)
      const values = [app, unusedMs, leaseMs, limit]
      return (await database.query<UnusedRow>(sql.listUnused, values)).map(decodeUnused)
    },
    async removeChat(chat, { leaseMs, unusedMs = null }) {
      const key = chatColumns(chat)
      const openRunKey = chatColumns({ ...chat, appName: chat.appName + OPEN_RUN_LOCK })
      // A turn or a live session that starts meanwhile waits for these locks, and finds the chat removed or unchanged.
      const lock = [`removal ${randomUUID()}`, randomUUID(), true, leaseMs]
      return database.transaction(async (run) => {
        if ((await run(lockChat, [...key, ...lock])).length === 0) return false
        const isOpen = (await run(lockChat, [...openRunKey, ...lock])).length === 0
        const isRemoved = !isOpen && (await removeLocked(sql, run, key, unusedMs))
        await run(sql.unlock, key)
        if (!isOpen) await run(sql.unlock, openRunKey)
        return isRemoved
      })
    },
    async listOrphans(page) {
      const rows = await database.query<OrphanRow>(sql.listOrphans, orphanValues(page))
      return decodeOrphans(page, rows)
    },
    async removeOrphan(chat) {
      await database.query(sql.removeOrphan, chatColumns(chat))
    },
    async countOldAudit(olderThanMs) {
      const [row] = await database.query<{ count: number }>(sql.countAudit, [olderThanMs])
      return row?.count ?? 0
    },
    async removeAudit({ olderThanMs, limit }) {
      return database.transaction(async (run) => {
        const head = await lockHead(sql, run)
        const rows = await run<TimedEntry>(sql.auditPage, [limit])
        const at = await readTime(sql, run)
        const cut = findCut(rows, { before: at - olderThanMs, limit })
        if (!cut) return 0
        const { seq, hash } = cut
        await recordRemoval(sql, run, head, { at, removed: { seq, hash } })
        await run(sql.putCut, [seq, hash])
        await run(sql.removeAudit, [seq])
        return cut.count
      })
    },
    async removeApprovals(limit) {
      return (await database.query(sql.removeApprovals, [limit])).length
    },
    async removeLocks() {
      await database.query(sql.removeLocks, [LOCK_AGE_MS])
    },
    async removeOwner(owner) {
      const key = ownerColumns(owner)
      await database.transaction(async (run) => {
        for (const remove of sql.removeOwner) await run(remove, key)
      })
    },
    async eraseApprovals(owner, limit) {
      const key = ownerColumns(owner)
      return database.transaction(async (run) => {
        // Locks approvals before the audit record, like every other writer.
        const ended = await run<{ id: string }>(sql.lockEnded, [...key, limit])
        if (ended.length === 0) return 0
        const ids = ended.map(({ id }) => id)
        const head = await lockHead(sql, run)
        const erased = await run<ErasedEntry>(sql.linksOf, [ids])
        if (erased.length > 0)
          await recordRemoval(sql, run, head, { at: await readTime(sql, run), erased })
        await run(sql.erase, [ids])
        await run(sql.removeEnded, [ids])
        return ids.length
      })
    },
  }
}

/** Removes a chat that the caller has locked, unless it is in use. */
async function removeLocked(
  sql: RetentionSql,
  run: RunStatement,
  key: SessionKey,
  unusedMs: number | null,
): Promise<boolean> {
  if ((await run(sql.isKept, [...key, unusedMs])).length > 0) return false
  // A program without locks may have appended an event meanwhile. The condition is checked again on its row.
  const removed = await run(sql.removeSession, [...key, unusedMs])
  if (removed.length === 0 && unusedMs !== null) return false
  for (const remove of sql.removeChat) await run(remove, key)
  return true
}

async function readTime(sql: RetentionSql, run: RunStatement): Promise<number> {
  return (await run<{ now: number }>(sql.now))[0]?.now ?? Number.NaN
}

/** Locks the audit record, so that writers take turns. Returns its newest entry. */
async function lockHead(sql: RetentionSql, run: RunStatement): Promise<AuditHead> {
  return (await run<AuditHead>(sql.lockHead))[0] ?? { seq: 0, hash: GENESIS }
}

/** Appends an audit entry that records a removal. The caller has locked the record. */
async function recordRemoval(
  sql: RetentionSql,
  run: RunStatement,
  head: AuditHead,
  removal: Removal,
): Promise<void> {
  const { seq, approval_id, version, entry, hash } = removalRow(head, removal)
  await run(sql.append, [seq, approval_id, version, removal.at, entry, hash, randomUUID()])
  await run(sql.putHead, [seq, hash])
}

type RetentionSql = ReturnType<typeof retentionSql>

function retentionSql(schema: string, { clock, leaseClock }: Clocks) {
  const inChat = 'app_name = $1 AND principal_id = $2 AND chat_id = $3'
  const ofOwner = 'app_name = $1 AND principal_id = $2'
  const isOpen = `(state IN ('requested', 'approved', 'executing') OR unreported_since IS NOT NULL)`
  const before = (parameter: string) => `(SELECT ${clock}) - ${parameter}::double precision`
  return {
    now: `SELECT ${clock} AS now`,
    listUnused: `
      SELECT app_name, user_id, session_id FROM ${schema}.sessions
      WHERE ($1::text IS NULL OR app_name = $1) AND greatest(updated_at, created_at) < ${before('$2')}
      AND NOT EXISTS (SELECT FROM ${schema}.approvals WHERE ${sameChat('approvals')} AND ${isOpen})
      ${KEEPING_TABLES.map((table) => `AND NOT EXISTS (SELECT FROM ${schema}.${table} WHERE ${sameChat(table)} AND deadline > ${before('$2')})`).join(' ')}
      AND NOT EXISTS (
        SELECT FROM ${schema}.chat_locks LEFT JOIN ${schema}.workers USING (worker)
        WHERE ${sameChat('chat_locks', ofAppOrOpenRun('sessions.app_name'))} AND greatest(locked_at, beat_at) > (SELECT ${leaseClock}) - $3::double precision)
      ORDER BY updated_at LIMIT $4`,
    listOrphans: `
      SELECT principal_id, chat_id, NOT ${hasChat(`${schema}.`)} AS is_orphan FROM ${schema}.chats
      WHERE app_name = $1 AND (principal_id, chat_id) > ($2, $3) ORDER BY principal_id, chat_id LIMIT $4`,
    removeOrphan: `DELETE FROM ${schema}.chats WHERE ${inChat} AND NOT ${hasChat(`${schema}.`)}`,
    isKept: `
      SELECT 1 WHERE EXISTS (SELECT FROM ${schema}.approvals WHERE ${inChat} AND ${isOpen})
      ${KEEPING_TABLES.map((table) => `OR $4::double precision IS NOT NULL AND EXISTS (SELECT FROM ${schema}.${table} WHERE ${inChat} AND deadline > ${before('$4')})`).join(' ')}`,
    removeSession: `
      DELETE FROM ${schema}.sessions WHERE app_name = $1 AND user_id = $2 AND session_id = $3
      AND ($4::double precision IS NULL OR greatest(updated_at, created_at) < ${before('$4')}) RETURNING 1`,
    removeChat: ['chats', ...POSTGRES_FEATURES.flatMap(({ ofChats = [] }) => ofChats)].map(
      (table) => `DELETE FROM ${schema}.${table} WHERE ${inChat}`,
    ),
    unlock: `DELETE FROM ${schema}.chat_locks WHERE ${inChat}`,
    countAudit: `
      SELECT count(*) FROM ${schema}.approval_audit WHERE seq < coalesce(
        (SELECT min(seq) FROM ${schema}.approval_audit WHERE at >= ${before('$1')}),
        (SELECT seq + 1 FROM ${schema}.audit_head))`,
    auditPage: `SELECT seq, approval_id, hash, at FROM ${schema}.approval_audit ORDER BY seq LIMIT $1`,
    lockHead: `SELECT seq, hash FROM ${schema}.audit_head FOR UPDATE`,
    putHead: `UPDATE ${schema}.audit_head SET seq = $1, hash = $2`,
    append: `
      INSERT INTO ${schema}.approval_audit (seq, approval_id, version, at, entry, hash, write_id)
      VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    putCut: `
      INSERT INTO ${schema}.audit_cut (seq, hash) VALUES ($1, $2)
      ON CONFLICT (single) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`,
    removeAudit: `DELETE FROM ${schema}.approval_audit WHERE seq <= $1`,
    // The number of an approval is that of its first entry.
    removeApprovals: `
      DELETE FROM ${schema}.approvals WHERE seq IN (
        SELECT seq FROM ${schema}.approvals WHERE seq <= (SELECT seq FROM ${schema}.audit_cut) AND NOT ${isOpen}
        AND NOT EXISTS (SELECT FROM ${schema}.approval_audit WHERE approval_id = approvals.id)
        ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED)
      RETURNING 1`,
    removeLocks: `
      DELETE FROM ${schema}.chat_locks WHERE locked_at < (SELECT ${leaseClock}) - $1::double precision
      AND NOT EXISTS (
        SELECT FROM ${schema}.workers
        WHERE workers.worker = chat_locks.worker AND beat_at >= (SELECT ${leaseClock}) - $1::double precision)`,
    removeOwner: [
      `DELETE FROM ${schema}.user_state WHERE app_name = $1 AND user_id = $2`,
      ...OWNED_TABLES.map((table) => `DELETE FROM ${schema}.${table} WHERE ${ofOwner}`),
    ],
    lockEnded: `
      SELECT id FROM ${schema}.approvals WHERE ${ofOwner} AND NOT ${isOpen} ORDER BY seq LIMIT $3 FOR UPDATE SKIP LOCKED`,
    linksOf: `
      SELECT seq, hash, coalesce(
        (SELECT hash FROM ${schema}.approval_audit earlier WHERE earlier.seq < audit.seq ORDER BY earlier.seq DESC LIMIT 1),
        (SELECT hash FROM ${schema}.audit_cut), '') AS previous
      FROM ${schema}.approval_audit audit WHERE approval_id = ANY ($1::text[]) ORDER BY seq`,
    erase: `UPDATE ${schema}.approval_audit SET entry = '${ERASED}' WHERE approval_id = ANY ($1::text[])`,
    removeEnded: `DELETE FROM ${schema}.approvals WHERE id = ANY ($1::text[])`,
  }
}

/** The tables with rows of a principal, other than sessions and approvals. */
/** The tables whose rows keep a chat until their deadline. */
const KEEPING_TABLES = POSTGRES_FEATURES.flatMap(({ keepsChats }) => keepsChats ?? [])

const OWNED_TABLES = ['chats', ...POSTGRES_FEATURES.flatMap(({ owned }) => owned)]

import { randomUUID } from 'node:crypto'

import type { AuditHead } from '../../approvals/approval-store.ts'
import { type AppChatRef, LIVE_LOCK } from '../../shared/chat-ref.ts'
import type { OrphanRow } from '../rows.ts'
import { chatColumns, ofAppOrLive, readOrphans } from '../rows.ts'
import { ERASED, type ErasedEntry, findCut, removalRow, type TimedRow } from '../audit-chain.ts'
import type {
  OrphanPage,
  Orphans,
  Owner,
  RemovalCondition,
  RetentionStore,
  UnusedChats,
} from '../store.ts'
import { checkName } from '../session-key.ts'
import { type ApprovalSql, approvalSql } from './approval-sql.ts'
import type { Clocks, Database, RunStatement } from './database.ts'

/** Removes data from PostgreSQL. Each method is one short transaction. */
export class PostgresRetentionStore implements RetentionStore {
  readonly #database: Database
  readonly #sql: ReturnType<typeof retentionSql>
  readonly #locks: ApprovalSql

  constructor(database: Database, schema: string, clocks: Clocks) {
    this.#database = database
    this.#sql = retentionSql(schema, clocks)
    this.#locks = approvalSql(schema, clocks)
  }

  async listUnused({ appName, unusedMs, leaseMs, limit }: UnusedChats): Promise<AppChatRef[]> {
    const app = appName === undefined ? null : checkName('appName', appName)
    const values = [app, unusedMs, leaseMs, limit]
    const rows = await this.#database.query<SessionRow>(this.#sql.listUnused, values)
    return rows.map((row) => ({
      appName: row.app_name,
      principalId: row.user_id,
      chatId: row.session_id,
    }))
  }

  async removeChat(chat: AppChatRef, condition: RemovalCondition): Promise<boolean> {
    const { leaseMs, unusedMs = null } = condition
    const key = chatColumns(chat)
    const liveKey = chatColumns({ ...chat, appName: chat.appName + LIVE_LOCK })
    // A turn or a live session that starts meanwhile waits for these locks, and finds the chat removed or unchanged.
    const lock = [`removal ${randomUUID()}`, randomUUID(), true, leaseMs]
    return this.#database.transaction(async (run) => {
      if ((await run(this.#locks.lockChat, [...key, ...lock])).length === 0) return false
      const isLive = (await run(this.#locks.lockChat, [...liveKey, ...lock])).length === 0
      const isKept = isLive || (await run(this.#sql.isKept, [...key, unusedMs])).length > 0
      // A program without locks may have appended an event meanwhile. The condition is checked again on its row.
      const removed = isKept ? [] : await run(this.#sql.removeSession, [...key, unusedMs])
      const isRemoved = !isKept && (removed.length > 0 || unusedMs === null)
      if (isRemoved) for (const remove of this.#sql.removeChat) await run(remove, key)
      await run(this.#sql.unlock, key)
      if (!isLive) await run(this.#sql.unlock, liveKey)
      return isRemoved
    })
  }

  async listOrphans({ appName, after, limit }: OrphanPage): Promise<Orphans> {
    const { principalId = '', chatId = '' } = after ?? {}
    const values = [checkName('appName', appName), principalId, chatId, limit]
    const rows = await this.#database.query<OrphanRow>(this.#sql.listOrphans, values)
    return readOrphans(appName, rows, limit)
  }

  async removeOrphan(chat: AppChatRef): Promise<void> {
    await this.#database.query(this.#sql.removeOrphan, chatColumns(chat))
  }

  async countOldAudit(olderThanMs: number): Promise<number> {
    const [row] = await this.#database.query<{ count: number }>(this.#sql.countAudit, [olderThanMs])
    return row?.count ?? 0
  }

  async removeAudit({
    olderThanMs,
    limit,
  }: {
    readonly olderThanMs: number
    readonly limit: number
  }): Promise<number> {
    return this.#database.transaction(async (run) => {
      const head = await this.#lockHead(run)
      const rows = await run<TimedRow>(this.#sql.auditPage, [limit])
      const at = (await run<{ now: number }>(this.#locks.now))[0]?.now ?? Number.NaN
      const cut = findCut(rows, { before: at - olderThanMs, limit })
      if (!cut) return 0
      const { seq, hash } = cut
      await this.#append(run, head, { at, removed: { seq, hash } })
      await run(this.#sql.putCut, [seq, hash])
      await run(this.#sql.removeAudit, [seq])
      return cut.count
    })
  }

  async removeApprovals(limit: number): Promise<number> {
    return (await this.#database.query(this.#sql.removeApprovals, [limit])).length
  }

  async removeLocks(): Promise<void> {
    await this.#database.query(this.#sql.removeLocks, [86_400_000])
  }

  async removeOwner({ appName, principalId }: Owner): Promise<void> {
    const key = [checkName('appName', appName), checkName('principalId', principalId)]
    await this.#database.transaction(async (run) => {
      for (const remove of this.#sql.removeOwner) await run(remove, key)
    })
  }

  async eraseApprovals({ appName, principalId }: Owner, limit: number): Promise<number> {
    const key = [checkName('appName', appName), checkName('principalId', principalId)]
    return this.#database.transaction(async (run) => {
      // Locks approvals before the audit record, like every other writer.
      const ended = await run<{ id: string }>(this.#sql.lockEnded, [...key, limit])
      if (ended.length === 0) return 0
      const ids = ended.map(({ id }) => id)
      const head = await this.#lockHead(run)
      const erased = await run<ErasedEntry>(this.#sql.linksOf, [ids])
      const at = (await run<{ now: number }>(this.#locks.now))[0]?.now ?? Number.NaN
      if (erased.length > 0) await this.#append(run, head, { at, erased })
      await run(this.#sql.erase, [ids])
      await run(this.#sql.removeEnded, [ids])
      return ids.length
    })
  }

  /** Locks the audit record, so that writers take turns. Returns its newest entry. */
  async #lockHead(run: RunStatement): Promise<AuditHead> {
    return (await run<AuditHead>(this.#sql.lockHead))[0] ?? { seq: 0, hash: '' }
  }

  async #append(
    run: RunStatement,
    head: AuditHead,
    removal: Parameters<typeof removalRow>[1],
  ): Promise<void> {
    const { seq, approval_id, version, entry, hash } = removalRow(head, removal)
    await run(this.#sql.append, [seq, approval_id, version, removal.at, entry, hash, randomUUID()])
    await run(this.#sql.putHead, [seq, hash])
  }
}

interface SessionRow {
  readonly app_name: string
  readonly user_id: string
  readonly session_id: string
}

function retentionSql(schema: string, { clock, leaseClock }: Clocks) {
  const inChat = 'app_name = $1 AND principal_id = $2 AND chat_id = $3'
  const ofOwner = 'app_name = $1 AND principal_id = $2'
  const isOpen = `(state IN ('requested', 'approved', 'executing') OR unreported_since IS NOT NULL)`
  const isUsed = `(
    EXISTS (
      SELECT FROM ${schema}.sessions
      WHERE sessions.app_name = chats.app_name AND user_id = chats.principal_id AND session_id = chats.chat_id)
    OR EXISTS (
      SELECT FROM ${schema}.chat_locks held WHERE held.app_name ${ofAppOrLive('chats.app_name')}
      AND held.principal_id = chats.principal_id AND held.chat_id = chats.chat_id))`
  const before = (parameter: string) => `(SELECT ${clock}) - ${parameter}::double precision`
  return {
    listUnused: `
      SELECT app_name, user_id, session_id FROM ${schema}.sessions
      WHERE ($1::text IS NULL OR app_name = $1) AND greatest(updated_at, created_at) < ${before('$2')}
      AND NOT EXISTS (SELECT FROM ${schema}.approvals WHERE ${sameChat('approvals')} AND ${isOpen})
      AND NOT EXISTS (
        SELECT FROM ${schema}.browser_calls WHERE ${sameChat('browser_calls')} AND deadline > ${before('$2')})
      AND NOT EXISTS (
        SELECT FROM ${schema}.chat_locks LEFT JOIN ${schema}.workers USING (worker)
        WHERE ${sameChat('chat_locks', ofAppOrLive('sessions.app_name'))} AND greatest(locked_at, beat_at) > (SELECT ${leaseClock}) - $3::double precision)
      ORDER BY updated_at LIMIT $4`,
    listOrphans: `
      SELECT principal_id, chat_id, NOT ${isUsed} AS is_orphan FROM ${schema}.chats
      WHERE app_name = $1 AND (principal_id, chat_id) > ($2, $3) ORDER BY principal_id, chat_id LIMIT $4`,
    removeOrphan: `DELETE FROM ${schema}.chats WHERE ${inChat} AND NOT ${isUsed}`,
    isKept: `
      SELECT 1 WHERE EXISTS (SELECT FROM ${schema}.approvals WHERE ${inChat} AND ${isOpen})
      OR $4::double precision IS NOT NULL AND EXISTS (
        SELECT FROM ${schema}.browser_calls WHERE ${inChat} AND deadline > ${before('$4')})`,
    removeSession: `
      DELETE FROM ${schema}.sessions WHERE app_name = $1 AND user_id = $2 AND session_id = $3
      AND ($4::double precision IS NULL OR greatest(updated_at, created_at) < ${before('$4')}) RETURNING 1`,
    removeChat: ['chats', 'browser_calls', 'relay_turns', 'live_sessions'].map(
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
const OWNED_TABLES = [
  'chats',
  'browser_calls',
  'relay_turns',
  'live_sessions',
  'credentials',
  'sign_in_attempts',
]

/** Returns the condition that a row belongs to the chat of a session. */
function sameChat(table: string, app = '= sessions.app_name'): string {
  return `${table}.app_name ${app} AND ${table}.principal_id = sessions.user_id AND ${table}.chat_id = sessions.session_id`
}

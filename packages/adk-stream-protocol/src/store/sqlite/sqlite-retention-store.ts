import type { AuditHead } from '../../approvals/approval-store.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import type { OrphanRow } from '../rows.ts'
import { chatColumns, ofAppOrLive, readOrphans } from '../rows.ts'
import { ERASED, type ErasedEntry, findCut, GENESIS, removalRow } from '../audit-chain.ts'
import type {
  OrphanPage,
  Orphans,
  Owner,
  RemovalCondition,
  RetentionStore,
  UnusedChats,
} from '../store.ts'
import { checkName } from '../session-key.ts'
import { DATABASE_CLOCK, SELECT_CUT, SELECT_LAST } from './approval-sql.ts'
import type { Connection } from './connection.ts'
import { type LeaseClock, monotonicClock } from './lease-clock.ts'

const DAY_MS = 86_400_000

/** Removes data from SQLite. Each method is one short transaction. */
export class SqliteRetentionStore implements RetentionStore {
  readonly #connection: Connection
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #leaseNow: LeaseClock

  /** `clock` is the SQL expression of the clock for ages, in ms. */
  constructor(
    connection: Connection,
    clock: string = DATABASE_CLOCK,
    leaseClock: LeaseClock = monotonicClock,
  ) {
    this.#connection = connection
    this.#statements = prepareStatements(connection, clock)
    this.#leaseNow = leaseClock
  }

  async listUnused({ appName, unusedMs, leaseMs, limit }: UnusedChats): Promise<AppChatRef[]> {
    const app = appName === undefined ? null : checkName('appName', appName)
    const rows = await this.#connection.read(() => {
      const before = this.#now() - unusedMs
      return this.#statements.listUnused.rows(app, before, this.#leaseNow() - leaseMs, limit)
    })
    return rows.map((row) => ({
      appName: row.app_name,
      principalId: row.user_id,
      chatId: row.session_id,
    }))
  }

  async removeChat(chat: AppChatRef, { unusedMs, leaseMs }: RemovalCondition): Promise<boolean> {
    const key = chatColumns(chat)
    const statements = this.#statements
    return this.#connection.write(() => {
      const before = unusedMs === undefined ? null : this.#now() - unusedMs
      if (statements.isKept.rows(...key, this.#leaseNow() - leaseMs, before).length > 0)
        return false
      for (const remove of statements.removeChat) remove.run(...key)
      return true
    })
  }

  async listOrphans({ appName, after, limit }: OrphanPage): Promise<Orphans> {
    const { principalId = '', chatId = '' } = after ?? {}
    const values = [checkName('appName', appName), principalId, chatId, limit]
    return readOrphans(appName, await this.#statements.listOrphans.select(...values), limit)
  }

  async removeOrphan(chat: AppChatRef): Promise<void> {
    await this.#connection.write(() => this.#statements.removeOrphan.run(...chatColumns(chat)))
  }

  async countOldAudit(olderThanMs: number): Promise<number> {
    let count = 0
    for (let after = 0; ;) {
      const rows = await this.#statements.auditPage.select(after, PAGE)
      const before = (await this.#statements.now.select())[0]?.now ?? Number.NaN
      const end = rows.findIndex(({ at }) => at >= before - olderThanMs)
      count += end === -1 ? rows.length : end
      if (end !== -1 || rows.length < PAGE) return count
      after = rows.at(-1)?.seq ?? after
    }
  }

  async removeAudit({
    olderThanMs,
    limit,
  }: {
    readonly olderThanMs: number
    readonly limit: number
  }): Promise<number> {
    const statements = this.#statements
    return this.#connection.write(() => {
      const at = this.#now()
      const rows = statements.auditPage.rows(0, limit)
      const cut = findCut(rows, { before: at - olderThanMs, limit })
      if (!cut) return 0
      const { seq, hash } = cut
      this.#append({ at, removed: { seq, hash } })
      statements.putCut.run(seq, hash)
      statements.removeAudit.run(seq)
      return cut.count
    })
  }

  async removeApprovals(limit: number): Promise<number> {
    return this.#connection.write(() => {
      const [next] = this.#statements.firstRecorded.rows()
      return this.#statements.removeApprovals.run(next?.seq ?? Number.MAX_SAFE_INTEGER, limit)
    })
  }

  /** The write-ahead log contains what was removed from the file. */
  async overwriteRemoved(): Promise<void> {
    await this.#connection.emptyLog()
  }

  async removeLocks(): Promise<void> {
    await this.#connection.write(
      () => this.#statements.removeLocks.run(this.#leaseNow() - DAY_MS),
      'process-death',
    )
  }

  async removeOwner({ appName, principalId }: Owner): Promise<void> {
    const key = [checkName('appName', appName), checkName('principalId', principalId)]
    await this.#connection.write(() => {
      for (const remove of this.#statements.removeOwner) remove.run(...key)
    })
  }

  async eraseApprovals({ appName, principalId }: Owner, limit: number): Promise<number> {
    const key = [checkName('appName', appName), checkName('principalId', principalId)]
    const statements = this.#statements
    return this.#connection.write(() => {
      const ids = statements.endedOf.rows(...key, limit).map(({ id }) => id)
      const erased = ids.flatMap((id) => this.#erase(id))
      if (erased.length > 0) this.#append({ at: this.#now(), erased })
      for (const id of ids) statements.removeApproval.run(id)
      return ids.length
    })
  }

  /** Erases the contents of the audit entries of an approval. */
  #erase(approvalId: string): ErasedEntry[] {
    const links = this.#statements.linksOf.rows(approvalId)
    this.#statements.erase.run(approvalId)
    return links
  }

  #append(removal: Parameters<typeof removalRow>[1]): void {
    const [last] = this.#statements.lastEntry.rows()
    const [counter] = this.#statements.counter.rows()
    const head = { seq: counter?.seq ?? 0, hash: last?.hash ?? GENESIS }
    const { seq, approval_id, version, entry, hash } = removalRow(head, removal)
    this.#statements.append.run(seq, approval_id, version, entry, hash)
  }

  #now(): number {
    return this.#statements.now.rows()[0]?.now ?? Number.NaN
  }
}

const PAGE = 500

interface TimedAuditRow {
  readonly seq: number
  readonly approval_id: string
  readonly hash: string
  readonly at: number
}

function prepareStatements(connection: Connection, clock: string) {
  const inChat = 'app_name = ?1 AND principal_id = ?2 AND chat_id = ?3'
  // The lock of a turn or of a live session.
  const locksChat = `app_name ${ofAppOrLive('?1')} AND principal_id = ?2 AND chat_id = ?3`
  const isUsed = `(
    EXISTS (
      SELECT 1 FROM sessions
      WHERE sessions.app_name = chats.app_name AND user_id = chats.principal_id AND session_id = chats.chat_id)
    OR EXISTS (
      SELECT 1 FROM chat_locks held WHERE held.app_name ${ofAppOrLive('chats.app_name')}
      AND held.principal_id = chats.principal_id AND held.chat_id = chats.chat_id))`
  const isOpen = `(state IN ('requested', 'approved', 'executing') OR untold_since IS NOT NULL)`
  const lease = 'max(locked_at, coalesce(beat_at, 0))'
  return {
    now: connection.prepare<{ now: number }>(`SELECT ${clock} AS now`),
    // The inner query reads only the index.
    listUnused: connection.prepare<{ app_name: string; user_id: string; session_id: string }>(`
      SELECT app_name, user_id, session_id FROM sessions
      WHERE session IN (
        SELECT session FROM sessions INDEXED BY sessions_updated
        WHERE (?1 IS NULL OR app_name = ?1) AND updated_at < ?2)
      AND created_at < ?2
      AND NOT EXISTS (SELECT 1 FROM approvals WHERE ${sameChat('approvals')} AND ${isOpen})
      AND NOT EXISTS (SELECT 1 FROM waits WHERE ${sameChat('waits')} AND deadline > ?2)
      AND NOT EXISTS (
        SELECT 1 FROM chat_locks LEFT JOIN workers USING (worker)
        WHERE ${sameChat('chat_locks', ofAppOrLive('sessions.app_name'))} AND ${lease} > ?3)
      ORDER BY updated_at LIMIT ?4`),
    isKept: connection.prepare<{ kept: number }>(`
      SELECT 1 AS kept WHERE
        EXISTS (SELECT 1 FROM chat_locks LEFT JOIN workers USING (worker) WHERE ${locksChat} AND ${lease} > ?4)
        OR EXISTS (SELECT 1 FROM approvals WHERE ${inChat} AND ${isOpen})
        OR ?5 IS NOT NULL AND (
          EXISTS (SELECT 1 FROM waits WHERE ${inChat} AND deadline > ?5)
          OR NOT EXISTS (
            SELECT 1 FROM sessions
            WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3 AND max(updated_at, created_at) < ?5))`),
    removeChat: [
      connection.prepare(
        'DELETE FROM sessions WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3',
      ),
      ...['chats', 'waits', 'live_sessions'].map((table) =>
        connection.prepare(`DELETE FROM ${table} WHERE ${inChat}`),
      ),
      connection.prepare(`DELETE FROM chat_locks WHERE ${locksChat}`),
    ],
    listOrphans: connection.prepare<OrphanRow>(`
      SELECT principal_id, chat_id, NOT ${isUsed} AS is_orphan FROM chats
      WHERE app_name = ?1 AND (principal_id, chat_id) > (?2, ?3) ORDER BY principal_id, chat_id LIMIT ?4`),
    removeOrphan: connection.prepare(`DELETE FROM chats WHERE ${inChat} AND NOT ${isUsed}`),
    auditPage: connection.prepare<TimedAuditRow>(`
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
    lastEntry: connection.prepare<AuditHead>(SELECT_LAST),
    counter: connection.prepare<{ seq: number }>(
      "SELECT seq FROM sqlite_sequence WHERE name = 'approval_audit'",
    ),
    append: connection.prepare(
      'INSERT INTO approval_audit (seq, approval_id, version, entry, hash) VALUES (?, ?, ?, ?, ?)',
    ),
  }
}

/** The tables with rows of a principal, other than sessions and approvals. */
const OWNED_TABLES = ['chats', 'waits', 'live_sessions', 'credentials', 'sign_in_attempts']

/** Returns the condition that a row belongs to the chat of a session. */
function sameChat(table: string, app = '= sessions.app_name'): string {
  return `${table}.app_name ${app} AND ${table}.principal_id = sessions.user_id AND ${table}.chat_id = sessions.session_id`
}

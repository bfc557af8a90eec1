import type { AuditHead } from '../../approvals/approval-store.ts'
import type { AuditEntry } from '../../approvals/audit-entry.ts'
import { type AuditReader, type ChainedRow, GENESIS, hashEntry } from '../audit-chain.ts'
import { encodeJson } from '../stored-json.ts'
import type { Connection } from './connection.ts'

/** Prepares a function that appends entries within a write transaction. */
export function prepareAppend(connection: Connection) {
  const head = connection.prepare<{ seq: number | null; hash: string | null }>(
    `SELECT (${SELECT_COUNTER}) AS seq, (SELECT hash FROM (${SELECT_LAST})) AS hash`,
  )
  const insert = connection.prepare(
    'INSERT INTO approval_audit (seq, approval_id, version, entry, hash) VALUES (?, ?, ?, ?, ?)',
  )
  return (entries: readonly AuditEntry[]): void => {
    const [last] = head.rows()
    let seq = last?.seq ?? 0
    let hash = last?.hash ?? GENESIS
    for (const added of entries) {
      const { approvalId, version } = added
      const entry = encodeJson(added)
      seq += 1
      hash = hashEntry(hash, { seq, approval_id: approvalId, version, entry })
      insert.run(seq, approvalId, version, entry, hash)
    }
  }
}

/** Adds hashes to the entries of a record that was written before entries had any. */
export function chainExisting(connection: Connection): void {
  const select = connection.prepare<ChainedRow>(SELECT_PAGE)
  const update = connection.prepare('UPDATE approval_audit SET hash = ? WHERE seq = ?')
  let previous = GENESIS
  let after = 0
  for (;;) {
    const rows = select.rows(after, PAGE)
    for (const row of rows) {
      previous = hashEntry(previous, row)
      update.run(previous, row.seq)
      after = row.seq
    }
    if (rows.length < PAGE) return
  }
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

export const SELECT_CUT = 'SELECT seq, hash FROM audit_cut'
export const SELECT_LAST = 'SELECT seq, hash FROM approval_audit ORDER BY seq DESC LIMIT 1'
// SQLite keeps its counter when rows are removed.
const SELECT_COUNTER = "SELECT seq FROM sqlite_sequence WHERE name = 'approval_audit'"
const SELECT_PAGE = `
  SELECT seq, approval_id, version, entry, hash FROM approval_audit WHERE seq > ? ORDER BY seq LIMIT ?`

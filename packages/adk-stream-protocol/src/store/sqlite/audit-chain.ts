import { createHash } from 'node:crypto'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'

import type { AuditCheck, AuditHead, AuditVerification } from '../../approvals/approval-store.ts'
import type { Connection } from './connection.ts'

/** A stored entry of the audit record. */
interface ChainedRow {
  readonly seq: number
  readonly approval_id: string
  readonly version: number
  readonly entry: string
  readonly hash: string | null
}

/** The previous hash of the first entry. */
const GENESIS = ''

/** Returns the hash of an entry: SHA-256 over the hash of the previous entry and all columns of this one. */
function hashEntry(previous: string, row: Omit<ChainedRow, 'hash'>): string {
  const { seq, approval_id, version, entry } = row
  const content = JSON.stringify([previous, seq, approval_id, version, entry])
  return createHash('sha256').update(content).digest('hex')
}

/** Prepares a function that appends an entry within a write transaction. */
export function prepareAppend(connection: Connection) {
  const last = connection.prepare<AuditHead>(SELECT_LAST)
  const count = connection.prepare<{ seq: number }>(SELECT_COUNTER)
  const insert = connection.prepare(
    'INSERT INTO approval_audit (seq, approval_id, version, entry, hash) VALUES (?, ?, ?, ?, ?)',
  )
  return (approvalId: string, version: number, entry: string): void => {
    const seq = (count.rows()[0]?.seq ?? 0) + 1
    const row = { seq, approval_id: approvalId, version, entry }
    const hash = hashEntry(last.rows()[0]?.hash ?? GENESIS, row)
    insert.run(seq, approvalId, version, entry, hash)
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

/** Checks the hashes of a record page by page. Yields to the event loop between pages. */
export async function verifyChain(
  connection: Connection,
  { newest = Infinity, head: known }: AuditCheck = {},
): Promise<AuditVerification> {
  const select = connection.prepare<ChainedRow>(SELECT_PAGE)
  const [counter] = await connection.prepare<{ seq: number }>(SELECT_COUNTER).select()
  const last = counter?.seq ?? 0
  let after = Math.max(0, last - newest - 1)
  // A partial check trusts the oldest entry that it reads, unless that is the first entry of the record.
  let previous = after === 0 ? GENESIS : undefined
  let head: AuditHead | undefined
  let entries = 0
  for (;;) {
    const rows = await select.select(after, PAGE)
    for (const row of rows) {
      const { seq, hash } = row
      const isRight = hash !== null && (previous === undefined || hash === hashEntry(previous, row))
      const isKnown = known?.seq !== seq || known.hash === hash
      if (!isRight || !isKnown) return { entries, head, fault: { seq, reason: 'changed' } }
      if (previous !== undefined) entries += 1
      previous = hash
      head = { seq, hash }
      after = seq
    }
    if (rows.length < PAGE) break
    await yieldToEventLoop()
  }
  // SQLite keeps its counter when rows are removed.
  const missing = Math.max(last, known?.seq ?? 0)
  return (head?.seq ?? 0) < missing
    ? { entries, head, fault: { seq: (head?.seq ?? 0) + 1, reason: 'missing' } }
    : { entries, head }
}

const PAGE = 200

const SELECT_LAST = 'SELECT seq, hash FROM approval_audit ORDER BY seq DESC LIMIT 1'
const SELECT_COUNTER = "SELECT seq FROM sqlite_sequence WHERE name = 'approval_audit'"
const SELECT_PAGE = `
  SELECT seq, approval_id, version, entry, hash FROM approval_audit WHERE seq > ? ORDER BY seq LIMIT ?`

import { createHash } from 'node:crypto'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'

import type { AuditCheck, AuditHead, AuditVerification } from '../approvals/approval-store.ts'

/** A stored entry of the audit record. */
export interface ChainedRow {
  readonly seq: number
  readonly approval_id: string
  readonly version: number
  readonly entry: string
  readonly hash: string | null
}

/** The previous hash of the first entry. */
export const GENESIS = ''

/** Returns the hash of an entry: SHA-256 over the hash of the previous entry and all columns of this one. */
export function hashEntry(previous: string, row: Omit<ChainedRow, 'hash'>): string {
  const { seq, approval_id, version, entry } = row
  const content = JSON.stringify([previous, seq, approval_id, version, entry])
  return createHash('sha256').update(content).digest('hex')
}

/** Reads a stored audit record. */
export interface AuditReader {
  /** Returns the number of entries that were ever written. It does not shrink when entries are removed. */
  readonly readCounter: () => Promise<number>
  /** Returns the next entries after a `seq`, in order. An empty page is the end. */
  readonly readPage: (after: number) => Promise<readonly ChainedRow[]>
}

/** Checks the hashes of a record page by page. Yields to the event loop between pages. */
export async function verifyChain(
  { readCounter, readPage }: AuditReader,
  { newest = Infinity, head: known }: AuditCheck = {},
): Promise<AuditVerification> {
  const last = await readCounter()
  let after = Math.max(0, last - newest - 1)
  // A partial check trusts the oldest entry that it reads, unless that is the first entry of the record.
  let previous = after === 0 ? GENESIS : undefined
  let head: AuditHead | undefined
  let entries = 0
  for (;;) {
    const rows = await readPage(after)
    if (rows.length === 0) break
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
    await yieldToEventLoop()
  }
  const missing = Math.max(last, known?.seq ?? 0)
  return (head?.seq ?? 0) < missing
    ? { entries, head, fault: { seq: (head?.seq ?? 0) + 1, reason: 'missing' } }
    : { entries, head }
}

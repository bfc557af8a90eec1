import { hash as digest } from 'node:crypto'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'

import type { AuditCheck, AuditHead, AuditVerification } from '../approvals/approval-store.ts'
import { decodeJson, encodeJson } from './stored-json.ts'

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
  return digest('sha256', content, 'hex')
}

/** The start of the `approval_id` of an entry that records a removal. */
const REMOVAL = 'removal:'

/** What replaces the content of an erased entry. Its hash stays. */
export const ERASED = '{"erased":true}'

/** An entry whose content was erased, with its hash and the hash of the entry before it. */
export interface ErasedEntry extends AuditHead {
  readonly previous: string
}

/** What an entry that records a removal contains. */
export interface Removal {
  readonly at: number
  /** The newest of the entries that were removed from the beginning of the record. */
  readonly removed?: AuditHead
  /** The entries whose contents were erased. */
  readonly erased?: readonly ErasedEntry[]
}

/** Returns the entry that records a removal. It is appended after `head`. */
export function removalRow(head: AuditHead, removal: Removal): ChainedRow & { hash: string } {
  const seq = head.seq + 1
  const row = { seq, approval_id: `${REMOVAL}${seq}`, version: 0, entry: encodeJson(removal) }
  return { ...row, hash: hashEntry(head.hash, row) }
}

/** Whether an entry is a transition of an approval whose content is still stored. */
export function hasTransition({
  approval_id,
  entry,
}: Pick<ChainedRow, 'approval_id' | 'entry'>): boolean {
  return !approval_id.startsWith(REMOVAL) && entry !== ERASED
}

/** A stored entry with the time at which it was written. */
export interface TimedEntry extends Pick<ChainedRow, 'seq' | 'approval_id'> {
  readonly hash: string
  readonly at: number
}

/**
 * Returns the newest of the first entries that are older than `before`. Returns undefined if there is nothing to remove
 * except entries that record removals: removing them would only add another one.
 */
export function findCut(
  rows: readonly TimedEntry[],
  { before, limit }: { readonly before: number; readonly limit: number },
): (AuditHead & { readonly count: number }) | undefined {
  const end = rows.findIndex(({ at }) => at >= before)
  const old = end === -1 ? rows : rows.slice(0, end)
  const last = old.at(-1)
  const isWorthwhile =
    old.length >= limit || old.some(({ approval_id }) => !approval_id.startsWith(REMOVAL))
  if (last === undefined || !isWorthwhile) return undefined
  return { seq: last.seq, hash: last.hash, count: old.length }
}

/** Reads a stored audit record. */
export interface AuditReader {
  /** Returns the number of entries that were ever written. It does not shrink when entries are removed. */
  readonly readCounter: () => Promise<number>
  /** Returns the next entries after a `seq`, in order. An empty page is the end. */
  readonly readPage: (after: number) => Promise<readonly ChainedRow[]>
  /** Returns the newest of the entries that retention has removed. */
  readonly readCut: () => Promise<AuditHead | undefined>
}

/** Checks the hashes of a record page by page. Yields to the event loop between pages. */
export async function verifyChain(
  reader: AuditReader,
  check: AuditCheck = {},
): Promise<AuditVerification> {
  for (;;) {
    const cut = await reader.readCut()
    const result = await verifyAfter(reader, check, cut)
    // Retention may have removed entries while they were read.
    if (!result.fault || (await reader.readCut())?.seq === cut?.seq) return result
  }
}

async function verifyAfter(
  reader: AuditReader,
  { newest = Infinity, head: known }: AuditCheck,
  cut: AuditHead | undefined,
): Promise<AuditVerification> {
  const start = cut ?? { seq: 0, hash: GENESIS }
  const last = await reader.readCounter()
  const after = Math.max(start.seq, last - newest - 1)
  const check = new RecordCheck(known)
  if (after === start.seq) check.startAt(start.hash, cut)
  const fault =
    findRemovedHead(start, known) ??
    (await readRecord(reader, check, after)) ??
    findMissing(check.head?.seq ?? start.seq, Math.max(last, known?.seq ?? 0)) ??
    check.findUnrecorded()
  const { entries, head } = check
  return { entries, head, ...(cut && { removed: cut }), ...(fault && { fault }) }
}

type Fault = NonNullable<AuditVerification['fault']>

function findRemovedHead(start: AuditHead, known: AuditHead | undefined): Fault | undefined {
  if (known && known.seq < start.seq) return { seq: known.seq, reason: 'removed' }
  const isChanged = known?.seq === start.seq && known.hash !== start.hash
  return isChanged ? { seq: known.seq, reason: 'changed' } : undefined
}

function findMissing(end: number, expected: number): Fault | undefined {
  return end < expected ? { seq: end + 1, reason: 'missing' } : undefined
}

async function readRecord(
  { readPage }: AuditReader,
  check: RecordCheck,
  after: number,
): Promise<Fault | undefined> {
  for (let rows = await readPage(after); rows.length > 0;) {
    for (const row of rows) {
      const fault = check.read(row)
      if (fault) return fault
    }
    await yieldToEventLoop()
    rows = await readPage(rows.at(-1)?.seq ?? Infinity)
  }
  return undefined
}

/** What a check has read so far, and the removals that no later entry has recorded yet. */
class RecordCheck {
  /** The number of entries whose hash was checked. */
  entries = 0
  head: AuditHead | undefined
  readonly #known: AuditHead | undefined
  /** The hash of the last entry. A partial check does not know it at first, and trusts the oldest entry that it reads. */
  #previous: string | undefined
  #cut: AuditHead | undefined
  readonly #erased = new Map<number, ErasedEntry>()

  constructor(known: AuditHead | undefined) {
    this.#known = known
  }

  /** Starts at the first stored entry. `cut` is the removed entry before it. */
  startAt(previous: string, cut: AuditHead | undefined): void {
    this.#previous = previous
    this.#cut = cut
  }

  /** Checks the next entry. */
  read(row: ChainedRow): Fault | undefined {
    const { seq, hash, entry } = row
    const previous = this.#previous
    const isIntact =
      hash !== null &&
      (previous === undefined || entry === ERASED || hash === hashEntry(previous, row))
    const isKnown = this.#known?.seq !== seq || this.#known.hash === hash
    if (!isIntact || !isKnown) return { seq, reason: 'changed' }
    if (previous !== undefined) {
      this.entries += 1
      if (entry === ERASED) this.#erased.set(seq, { seq, previous, hash })
      else if (row.approval_id.startsWith(REMOVAL)) this.#readRemoval(entry)
    }
    this.#previous = hash
    this.head = { seq, hash }
    return undefined
  }

  #readRemoval(entry: string): void {
    // `removalRow` wrote the entry, and its hash is valid.
    const { removed, erased = [] } = decodeJson(entry) as Removal
    if (removed?.seq === this.#cut?.seq && removed?.hash === this.#cut?.hash) this.#cut = undefined
    for (const { seq, previous, hash } of erased) {
      const found = this.#erased.get(seq)
      if (found?.previous === previous && found.hash === hash) this.#erased.delete(seq)
    }
  }

  /** Returns a removal that no entry has recorded. */
  findUnrecorded(): Fault | undefined {
    if (this.#cut) return { seq: this.#cut.seq, reason: 'missing' }
    const [seq] = this.#erased.keys()
    return seq === undefined ? undefined : { seq, reason: 'changed' }
  }
}

/** Returns a sentence that names the damaged entry. */
export function describeFault({ seq, reason }: Fault): string {
  if (reason === 'removed')
    return `Entry ${seq} was removed by retention, so its head can no longer be checked. Use a newer head.`
  const what =
    reason === 'changed' ? `Entry ${seq} or one before it was changed` : `Entry ${seq} is missing`
  return `${what}. The audit record of approvals is not intact. Compare it with a backup.`
}

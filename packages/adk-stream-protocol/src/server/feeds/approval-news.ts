import type { Approval, ApprovalStateName } from '../../approvals/approval.ts'
import type { AuditEvent } from '../../approvals/audit-entry.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import type { LazyBackend } from '../chats/backend.ts'

/** A change of an approval. */
export interface ApprovalChange {
  /** The approval as it is now. */
  readonly approval: Approval
  /** The state that the change led to. */
  readonly state: ApprovalStateName
  /** Whether another process made the change. */
  readonly elsewhere: boolean
}

export type OnApprovalChange = (change: ApprovalChange) => void

/** Tells every change of an approval once: those of this process as they are made, those of others when the record is read. */
export class ApprovalNews {
  readonly #notify: OnApprovalChange
  /** The newest version that was told, of approvals that changed lately. */
  readonly #reported = new Map<string, number>()
  /** How far the record is known. */
  #seq: number | undefined

  constructor(notify: OnApprovalChange) {
    this.#notify = notify
  }

  /** A change was made here. */
  changed(approval: Approval): void {
    const { version, state } = approval
    this.#notifyOnce({ approval, state: state.name, elsewhere: false }, version)
  }

  /** Passes over what has been written so far, unless somebody has begun to wait for it. */
  async skip(ledger: Ledger, isAwaited: () => boolean = () => false): Promise<void> {
    const last = await ledger.lastSeq()
    if (this.#seq === undefined || !isAwaited()) this.#seq = last
  }

  /** Reads on in the record, and tells what others wrote. */
  async read(ledger: Ledger): Promise<void> {
    const last = await ledger.lastSeq()
    let known = (this.#seq ??= last)
    if (known === last) return
    let read = 0
    for await (const record of ledger.audit({ after: known, limit: MAX_READ })) {
      const { approvalId, version, event, seq } = record
      if (!this.#isReported(approvalId, version)) {
        const approval = await ledger.get(approvalId)
        const change = approval && { approval, state: stateAfter(event), elsewhere: true }
        if (change) this.#notifyOnce(change, version)
      }
      this.#seq = known = seq
      read += 1
    }
    // What is left are entries of other applications.
    if (read < MAX_READ) this.#seq = Math.max(known, last)
  }

  #notifyOnce(change: ApprovalChange, version: number): void {
    const { id } = change.approval
    if (this.#isReported(id, version)) return
    this.#reported.delete(id)
    this.#reported.set(id, version)
    const [oldest] = this.#reported.keys()
    if (this.#reported.size > MAX_REPORTED && oldest !== undefined) this.#reported.delete(oldest)
    this.#notify(change)
  }

  #isReported(approvalId: string, version: number): boolean {
    return version <= (this.#reported.get(approvalId) ?? -1)
  }
}

/** Entries that are read at once; the rest is read the next time. */
const MAX_READ = 1_000
const MAX_REPORTED = 10_000

/** The state that an entry of the record tells of. */
function stateAfter(event: AuditEvent): ApprovalStateName {
  switch (event.type) {
    case 'voted':
    case 'withdrawn':
      return 'requested'
    case 'started':
      return 'executing'
    case 'lost':
      return event.becomes
    case 'requested':
    case 'approved':
    case 'denied':
    case 'expired':
    case 'cancelled':
    case 'succeeded':
    case 'failed':
      return event.type
  }
}

export interface NewsPollOptions {
  readonly backend: LazyBackend
  readonly news: ApprovalNews
  /** How often the record is read while somebody waits for news. */
  readonly intervalMs: number
  /** Whether anybody here waits for what other processes write: a feed, a client, or a live call that waits for a decision. */
  readonly isAwaited: () => boolean
  readonly onError: (error: unknown) => void
}

/** How often the end of the record is noted while nobody waits for news. */
const IDLE_MS = 1_000

/** Reads at intervals what other processes wrote about approvals. One read at a time. */
export class NewsPoll {
  readonly #options: NewsPollOptions
  readonly #timer: NodeJS.Timeout
  #reading: Promise<void> | undefined
  #skippedAt = 0

  constructor(options: NewsPollOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#begin(), options.intervalMs)
    this.#timer.unref()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#reading
  }

  #begin(): void {
    if (!this.#options.isAwaited() && performance.now() - this.#skippedAt < IDLE_MS) return
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
  }

  async #read(): Promise<void> {
    const { backend, news, isAwaited, onError } = this.#options
    try {
      const opened = await backend.peek()
      if (!opened) return
      if (isAwaited()) return await news.read(opened.ledger)
      this.#skippedAt = performance.now()
      await news.skip(opened.ledger, isAwaited)
    } catch (error) {
      onError(error)
    }
  }
}

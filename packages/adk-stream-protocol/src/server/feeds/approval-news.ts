import type { Approval, ApprovalStateName } from '../../approvals/approval.ts'
import type { AuditEvent } from '../../approvals/audit-entry.ts'
import { isAside } from '../../approvals/audit-entry.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import { keepNewest } from '../../shared/collections.ts'
import { SerialTask } from '../../shared/async.ts'
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

/** Reports every change of an approval once: changes of this process at once, changes of other processes when the audit record is read. */
export class ApprovalNews {
  readonly #notify: (change: ApprovalChange) => void
  /** The newest version that was reported, of recently changed approvals. */
  readonly #reported = new Map<string, number>()
  /** The sequence number up to which the record was read. */
  #seq: number | undefined

  constructor(notify: (change: ApprovalChange) => void) {
    this.#notify = notify
  }

  /** Reports a change that this process made, or one of another process before the record is read. */
  changed(approval: Approval, where: Pick<ApprovalChange, 'elsewhere'>): void {
    const { version, state } = approval
    this.#notifyOnce({ approval, state: state.name, ...where }, version)
  }

  /** Skips the entries written so far, unless a reader started to wait for them meanwhile. */
  async skip(ledger: Ledger, isAwaited: () => boolean = () => false): Promise<void> {
    const last = await ledger.lastSeq()
    if (this.#seq === undefined || !isAwaited()) this.#seq = last
  }

  /** Reads the new entries of the record, and reports changes of other processes. */
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
    // The remaining entries belong to other applications.
    if (read < MAX_READ) this.#seq = Math.max(known, last)
  }

  #notifyOnce(change: ApprovalChange, version: number): void {
    const { id } = change.approval
    if (this.#isReported(id, version)) return
    this.#reported.delete(id)
    this.#reported.set(id, version)
    keepNewest(this.#reported, MAX_REPORTED)
    this.#notify(change)
  }

  #isReported(approvalId: string, version: number): boolean {
    return version <= (this.#reported.get(approvalId) ?? -1)
  }
}

/** The maximum number of entries per read. */
const MAX_READ = 1_000
const MAX_REPORTED = 10_000

/** Returns the state of an approval after an audit event. */
function stateAfter(event: AuditEvent): ApprovalStateName {
  if (isAside(event)) return 'requested'
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
  /** The interval of reads while changes are awaited. */
  readonly intervalMs: number
  /** Whether a feed, a socket client or a live call of this process waits for changes of other processes. */
  readonly isAwaited: () => boolean
  readonly onError: (error: unknown) => void
}

/** The interval at which the end of the record is read while no changes are awaited. */
const IDLE_MS = 1_000

/** Reads changes of other processes. */
export interface NewsPoll {
  /** Reads now, if changes are awaited: another process has probably made one. */
  readonly readNow: () => void
  /** Reports how approvals have changed since they were read, if that was before changes were awaited. */
  readonly check: (approvals: readonly Approval[]) => Promise<void>
  /** Stops, and waits for the last read. */
  readonly close: () => Promise<void>
}

/** Reads changes of other processes at an interval, one read at a time. */
export function pollNews(options: NewsPollOptions): NewsPoll {
  const { backend, news, intervalMs, isAwaited, onError } = options
  let skippedAt = 0
  const reading = new SerialTask(async () => {
    try {
      const opened = await backend.peek()
      if (!opened) return
      if (isAwaited()) return await news.read(opened.ledger)
      skippedAt = performance.now()
      await news.skip(opened.ledger, isAwaited)
    } catch (error) {
      onError(error)
    }
  })
  const timer = setInterval(() => {
    if (!isAwaited() && performance.now() - skippedAt < IDLE_MS) return
    if (!reading.isRunning) void reading.run()
  }, intervalMs)
  timer.unref()
  return {
    readNow: () => {
      if (isAwaited()) void reading.run()
    },
    check: async (approvals) => {
      if (approvals.length === 0) return
      const { ledger } = await backend.get()
      const read = await Promise.all(approvals.map(({ id }) => ledger.get(id)))
      // Reports each change that is not skipped, in order.
      await reading.run()
      for (const [index, before] of approvals.entries()) {
        const approval = read[index]
        if (approval && approval.version !== before.version)
          news.changed(approval, { elsewhere: true })
      }
    },
    close: async () => {
      clearInterval(timer)
      await reading.settled()
    },
  }
}

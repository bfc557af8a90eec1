import type { Approval, ApprovalStateName } from '../approvals/approval.ts'
import type { AuditEvent } from '../approvals/audit-entry.ts'
import type { Ledger } from '../approvals/ledger.ts'

/** What is told of a change: the approval, and what it became. */
export type TellChange = (
  approval: Pick<Approval, 'id' | 'chat' | 'terms'>,
  state: ApprovalStateName,
) => void

/** Tells every change of an approval once: those of this process as they are made, those of others when the record is read. */
export class ApprovalNews {
  readonly #tell: TellChange
  /** The newest version that was told, of approvals that changed lately. */
  readonly #told = new Map<string, number>()
  /** How far the record is known. */
  #seq: number | undefined

  constructor(tell: TellChange) {
    this.#tell = tell
  }

  /** A change was made here. */
  changed(approval: Approval): void {
    this.#tellOnce(approval, approval.version, approval.state.name)
  }

  /** Passes over what has been written so far: nobody wants to know. */
  async skip(ledger: Ledger): Promise<void> {
    this.#seq = await ledger.lastSeq()
  }

  /** Reads on in the record, and tells what others wrote. */
  async read(ledger: Ledger): Promise<void> {
    const last = await ledger.lastSeq()
    let known = (this.#seq ??= last)
    if (known === last) return
    let read = 0
    for await (const record of ledger.audit({ after: known, limit: MAX_READ })) {
      const { approvalId, version, event, seq } = record
      if (!this.#isTold(approvalId, version)) {
        const approval = await ledger.get(approvalId)
        if (approval) this.#tellOnce(approval, version, stateAfter(event))
      }
      this.#seq = known = seq
      read += 1
    }
    // What is left are entries of other applications.
    if (read < MAX_READ) this.#seq = Math.max(known, last)
  }

  #tellOnce(approval: Approval, version: number, state: ApprovalStateName): void {
    if (this.#isTold(approval.id, version)) return
    this.#told.delete(approval.id)
    this.#told.set(approval.id, version)
    const [oldest] = this.#told.keys()
    if (this.#told.size > MAX_TOLD && oldest !== undefined) this.#told.delete(oldest)
    this.#tell(approval, state)
  }

  #isTold(approvalId: string, version: number): boolean {
    return version <= (this.#told.get(approvalId) ?? -1)
  }
}

/** Entries that are read at once; the rest is read the next time. */
const MAX_READ = 1_000
const MAX_TOLD = 10_000

/** The state that an entry of the record tells of. */
function stateAfter(event: AuditEvent): ApprovalStateName {
  switch (event.type) {
    case 'voted':
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

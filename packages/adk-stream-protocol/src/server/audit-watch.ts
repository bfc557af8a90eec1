import type { ApprovalStore } from '../approvals/approval-store.ts'
import { describeFault } from '../store/sqlite/audit-command.ts'
import { StoreError } from '../store/store-error.ts'

/** How many of the newest entries are checked when a bridge starts; the command checks all. */
const NEWEST = 1_000

/** Looks, when the store is opened, whether the audit record was changed by another program. */
export class AuditWatch {
  readonly #whenTampered: 'report' | 'refuse'
  readonly #onError: (error: unknown) => void
  #isTampered = false

  constructor(whenTampered: 'report' | 'refuse', onError: (error: unknown) => void) {
    this.#whenTampered = whenTampered
    this.#onError = onError
  }

  get isTampered(): boolean {
    return this.#isTampered
  }

  /** Checks the record: in the background, or, where a changed one is refused, before anything else is done. */
  async check(store: ApprovalStore): Promise<void> {
    const checked = this.#check(store)
    if (this.#whenTampered === 'refuse') return checked
    checked.catch(this.#onError)
  }

  async #check(store: ApprovalStore): Promise<void> {
    const { fault } = (await store.verifyAudit?.({ newest: NEWEST })) ?? {}
    if (!fault) return
    this.#isTampered = true
    throw new StoreError('tampered', describeFault(fault))
  }
}

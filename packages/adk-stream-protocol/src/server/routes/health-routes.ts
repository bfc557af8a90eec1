import type { ApprovalStore } from '../../approvals/approval-store.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { describeFault } from '../../store/sqlite/audit-command.ts'
import { StoreError } from '../../store/store-error.ts'

/** How long the database may take to answer before the server counts as not ready. */
const TIMEOUT_MS = 5_000

/** Whether the server can answer: its database can be opened and read, and it is not closing. */
export class Readiness {
  readonly #read: () => Promise<unknown>
  /** The check that runs now: any number of requests cost one read at a time. */
  #checking: Promise<void> | undefined
  #closed = false

  constructor(read: () => Promise<unknown>) {
    this.#read = read
  }

  /** Rejects if the server is not ready. */
  async check(): Promise<void> {
    if (this.#closed) throw new ProtocolError('unavailable')
    this.#checking ??= this.#tryRead().finally(() => (this.#checking = undefined))
    await this.#checking
  }

  close(): void {
    this.#closed = true
  }

  async #tryRead(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      const cause = new Error(`The database did not answer within ${TIMEOUT_MS} ms.`)
      timer = setTimeout(() => reject(cause), TIMEOUT_MS)
    })
    try {
      await Promise.race([this.#read(), timeout])
    } catch (cause) {
      throw new ProtocolError('unavailable', { cause, retryAfterSeconds: 5 })
    } finally {
      clearTimeout(timer)
    }
  }
}

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

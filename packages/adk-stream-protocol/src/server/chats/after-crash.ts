import type { Approval } from '../../approvals/approval.ts'
import { isRefusal } from '../../approvals/refusal.ts'
import type { Backend } from './backend.ts'
import { writeEnding } from './cancel-open.ts'

const LOST = 'the server stopped before the question was part of the conversation'

/** Approvals about which their conversations ask nothing. */
export class UnaskedApprovals {
  /** When an approval was first found so, by the clock of this process. */
  readonly #foundAt = new Map<string, number>()

  /**
   * Settles an approval about which its conversation asks nothing: it shows the ending already, or the message is gone, or the
   * process died between the ledger and the session. What was approved is withdrawn then, for nothing is there to go on with.
   */
  async settle(backend: Backend, approval: Approval): Promise<void> {
    const { ledger } = backend
    const { id, chat, toolCallId, state } = approval
    if (state.name !== 'approved') return ledger.markReported(chat, [toolCallId])
    // Another process may be about to store the question. It has less time for that than a dead one for its lease.
    if (!this.#isLeft(id, ledger.leaseMs)) return
    const cancelled = await ledger.cancel(id, LOST)
    this.#foundAt.delete(id)
    if (!isRefusal(cancelled)) await writeEnding(backend, cancelled)
  }

  /** Whether an approval was found without its question for as long as a lease. */
  #isLeft(id: string, leaseMs: number): boolean {
    const foundAt = this.#foundAt.get(id) ?? performance.now()
    this.#foundAt.set(id, foundAt)
    const [oldest] = this.#foundAt.keys()
    if (this.#foundAt.size > MAX_FOUND && oldest !== undefined) this.#foundAt.delete(oldest)
    return performance.now() - foundAt >= leaseMs
  }
}

const MAX_FOUND = 10_000

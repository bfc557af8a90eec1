import { setTimeout as delay } from 'node:timers/promises'

import type { Approval } from '../../approvals/approval.ts'
import type { Backend } from './backend.ts'
import type { TurnService } from './turn-service.ts'

export interface LiveOwnersOptions {
  readonly backend: { readonly get: () => Promise<Pick<Backend, 'ledger'>> }
  readonly turnService: Pick<TurnService, 'callState'>
}

/** How long the process that owns the live session may take to react to a decision. It polls the audit record four times as often. */
const REACTION_MS = 1_000
const POLL_MS = 50

/**
 * Approvals that were requested in a live session of another process. That process runs the call: its model waits for the result, and
 * its clients read the message. If it does not react, for example because it crashed, this process runs the call.
 */
export class LiveOwners {
  readonly #options: LiveOwnersOptions
  readonly #closed = new AbortController()

  constructor(options: LiveOwnersOptions) {
    this.#options = options
  }

  /** Leaves a decided approval to the process that owns its live session. Returns false if there is none, or if it has closed or does not react. */
  async leave(approval: Approval): Promise<boolean> {
    const { ledger } = await this.#options.backend.get()
    const { liveWorker } = approval
    if (liveWorker === undefined || liveWorker === ledger.worker) return false
    if (await ledger.hasClosed(liveWorker)) return false
    return this.#poll(REACTION_MS, () => this.#isTaken(approval))
  }

  /** Resolves when the conversation shows the outcome of an approval, or after two leases. */
  async untilReported(approval: Approval): Promise<void> {
    const { ledger } = await this.#options.backend.get()
    await this.#poll(2 * ledger.leaseMs, () => this.#isReported(approval))
  }

  close(): void {
    this.#closed.abort()
  }

  async #poll(forMs: number, isDone: () => Promise<boolean>): Promise<boolean> {
    const { signal } = this.#closed
    const until = performance.now() + forMs
    while (!signal.aborted) {
      if (await isDone()) return true
      if (performance.now() > until) return false
      await delay(POLL_MS)
    }
    return false
  }

  /** Whether the owner has reacted: an approved call has started, or the conversation shows that the call will not run. */
  async #isTaken(approval: Approval): Promise<boolean> {
    if (approval.state.name !== 'approved') return this.#isReported(approval)
    const { ledger } = await this.#options.backend.get()
    const now = await ledger.get(approval.id)
    return now?.state.name !== 'approved'
  }

  async #isReported(approval: Approval): Promise<boolean> {
    return (await this.#options.turnService.callState(approval)) !== 'asked'
  }
}

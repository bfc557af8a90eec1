import { setTimeout as delay } from 'node:timers/promises'

import type { Approval } from '../approvals/approval.ts'
import type { BackendOnDemand } from './backend.ts'
import type { TurnDesk } from './turn-desk.ts'

export interface LiveOwnersOptions {
  readonly backend: BackendOnDemand
  readonly turnDesk: Pick<TurnDesk, 'callState'>
}

/** How long the process that owns a live conversation may take to react to a decision. It reads the record four times as often. */
const REACTION_MS = 1_000
const LOOK_MS = 50

/**
 * Approvals that were asked in a live conversation of another process. That process goes on by the decision: its model waits for the
 * result, and its clients read the message. Where it does not react, because it died for example, the call is run here.
 */
export class LiveOwners {
  readonly #options: LiveOwnersOptions
  readonly #closed = new AbortController()

  constructor(options: LiveOwnersOptions) {
    this.#options = options
  }

  /** Leaves a decided approval to the process that owns its conversation. False if there is none, or if it does not react. */
  async leave(approval: Approval): Promise<boolean> {
    const { ledger } = await this.#options.backend.get()
    if (approval.liveWorker === undefined || approval.liveWorker === ledger.worker) return false
    return this.#look(REACTION_MS, () => this.#isTaken(approval))
  }

  /** Resolves when the conversation shows what came of an approval, or when that takes longer than two leases. */
  async untilTold(approval: Approval): Promise<void> {
    const { ledger } = await this.#options.backend.get()
    await this.#look(2 * ledger.leaseMs, () => this.#isTold(approval))
  }

  close(): void {
    this.#closed.abort()
  }

  async #look(forMs: number, found: () => Promise<boolean>): Promise<boolean> {
    const { signal } = this.#closed
    const until = performance.now() + forMs
    while (!signal.aborted) {
      if (await found()) return true
      if (performance.now() > until) return false
      await delay(LOOK_MS)
    }
    return false
  }

  /** Whether the call of an approval has been started; one that does not run has been taken when the conversation shows it. */
  async #isTaken(approval: Approval): Promise<boolean> {
    if (approval.state.name !== 'approved') return this.#isTold(approval)
    const { ledger } = await this.#options.backend.get()
    const now = await ledger.get(approval.id)
    return now?.state.name !== 'approved'
  }

  async #isTold(approval: Approval): Promise<boolean> {
    return (await this.#options.turnDesk.callState(approval)) !== 'asked'
  }
}

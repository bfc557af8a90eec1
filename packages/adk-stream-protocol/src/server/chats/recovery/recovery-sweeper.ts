import type { Approval } from '../../../approvals/approval.ts'
import type { BrowserCall } from '../../../store/browser-call-store.ts'
import type { LazyBackend } from '../backend.ts'
import { RecoveryQueue } from './recovery-queue.ts'

export interface RecoverySweeperOptions {
  readonly backend: LazyBackend
  readonly intervalMs: number
  /** Resumes the turn of a decided or ended approval until it ends. Never rejects. */
  readonly resume: (approval: Approval) => Promise<void>
  /** Resumes the turn of a browser call that timed out. Never rejects. */
  readonly expireBrowserCall: (call: BrowserCall) => Promise<void>
  /** Ends the turns of crashed servers. */
  readonly recoverTurns: () => Promise<void>
  /** Whether the sweep must write, to find out whether the store can be written to again. */
  readonly mustWrite: () => boolean
  readonly onError: (error: unknown) => void
  /** Called after each sweep, with the error that ended it. Every sweep uses the store. */
  readonly onSwept: (error?: unknown) => void
}

/** Expires approvals, recovers calls after crashes, and resumes turns whose outcome was not reported, at an interval. */
export class RecoverySweeper {
  readonly #options: RecoverySweeperOptions
  readonly #timer: NodeJS.Timeout
  readonly #queue: RecoveryQueue
  #sweep: Promise<void> | undefined
  #draining = false

  constructor(options: RecoverySweeperOptions) {
    this.#options = options
    this.#queue = new RecoveryQueue(options.resume, options.intervalMs)
    this.#timer = setInterval(() => this.#startSweep(), options.intervalMs)
    this.#timer.unref()
  }

  /** Starts no new work. Only renews the leases of running work. */
  drain(): void {
    this.#draining = true
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#sweep
  }

  #startSweep(): void {
    // Only one sweep runs at a time.
    this.#sweep ??= this.#runSweep().finally(() => {
      this.#sweep = undefined
    })
  }

  async #runSweep(): Promise<void> {
    const { backend, expireBrowserCall, recoverTurns, mustWrite, onError, onSwept } = this.#options
    try {
      const { ledger, browserCalls } = await backend.get()
      // Renew leases first, because the rest may take long. This writes to the disk, so an idle process skips it.
      if (ledger.busy || mustWrite()) await ledger.heartbeat()
      if (this.#draining) {
        // Other processes handle pending work.
        await ledger.recordFinished()
        return onSwept()
      }
      const ended = [...(await ledger.expireDue()), ...(await ledger.recover())]
      // The servers of another application report its approvals.
      const own = ended.filter(({ chat }) => chat.appName === ledger.appName)
      const unreported = await ledger.unreported({ except: this.#queue.deferredIds() })
      for (const approval of [...own, ...unreported]) this.#queue.take(approval)
      const { appName, leaseMs } = ledger
      for (const call of await browserCalls.takeDue({ appName, leaseMs, limit: 100 }))
        void expireBrowserCall(call)
      await recoverTurns()
      onSwept()
    } catch (error) {
      onSwept(error)
      onError(error)
    }
  }
}

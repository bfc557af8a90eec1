import type { Approval } from '../../approvals/approval.ts'
import type { BrowserCall } from '../../store/browser-call-store.ts'
import type { LazyBackend } from './backend.ts'
import { RecoveryQueue } from './recovery-queue.ts'

export interface RecoverySweeperOptions {
  readonly backend: LazyBackend
  readonly intervalMs: number
  /** Goes on with the turn of an approval that ended, or that was given and not followed, to its end. Never rejects. */
  readonly resume: (approval: Approval) => Promise<void>
  /** Tells that no client gave the output of a call in time. Never rejects. */
  readonly expireBrowserCall: (call: BrowserCall) => Promise<void>
  readonly onError: (error: unknown) => void
}

/** Does at intervals what no request asks for: expires, recovers after crashes, follows what nobody followed or told. */
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

  /** Begins nothing new: only the lease of what still runs is kept. */
  drain(): void {
    this.#draining = true
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#sweep
  }

  #startSweep(): void {
    // A sweep that takes longer than the interval is not joined by another.
    this.#sweep ??= this.#runSweep().finally(() => {
      this.#sweep = undefined
    })
  }

  async #runSweep(): Promise<void> {
    const { backend, expireBrowserCall, onError } = this.#options
    try {
      const { ledger, browserCalls } = await backend.get()
      // First, because all that follows may take its time. A sign is written to the disk, so only a process that has something
      // to lose gives one.
      if (ledger.busy) await ledger.beat()
      if (this.#draining) {
        // What waits is for other processes.
        await ledger.recordEnded()
        return
      }
      const ended = [...(await ledger.expireDue()), ...(await ledger.recover())]
      // What belongs to another application is told by its own servers.
      const own = ended.filter(({ chat }) => chat.appName === ledger.appName)
      const unreported = await ledger.unreported({ except: this.#queue.deferredIds() })
      for (const approval of [...own, ...unreported]) this.#queue.take(approval)
      const { appName, leaseMs } = ledger
      for (const call of await browserCalls.takeDue({ appName, leaseMs, limit: 100 }))
        void expireBrowserCall(call)
    } catch (error) {
      onError(error)
    }
  }
}

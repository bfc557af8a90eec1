import { Worker } from 'node:worker_threads'

import type { LeaseRenewal, LeaseOptions } from '../../approvals/approval-store.ts'
import { StoreError } from '../store-error.ts'

/**
 * Indices of the array that both threads share: when the event loop last ran, when the lease was last renewed (both
 * in ns of the monotonic clock), and whether the process is busy.
 */
const [LOOP_RAN_AT, RENEWED_AT, BUSY] = [0, 1, 2]

/** The data that the thread receives at its start. */
export interface LeaseThreadData {
  readonly path: string
  readonly worker: string
  readonly leaseMs: number
  readonly maxBlockedMs: number
  readonly shared: BigInt64Array
}

/** Renews the lease of a worker in a separate thread while the event loop of this thread is blocked. */
export class LeaseThread implements LeaseRenewal {
  readonly #shared = new BigInt64Array(new SharedArrayBuffer(3 * BigInt64Array.BYTES_PER_ELEMENT))
  readonly #thread: Worker
  readonly #timer: NodeJS.Timeout
  readonly #ended: Promise<void>

  constructor(path: string, { worker, leaseMs, maxBlockedMs, onError }: LeaseOptions) {
    this.#recordLoopRun()
    const shared = this.#shared
    const workerData: LeaseThreadData = { path, worker, leaseMs, maxBlockedMs, shared }
    this.#thread = new Worker(new URL('./lease-thread.js', import.meta.url), {
      workerData,
      name: 'adk-stream-protocol lease',
      // The thread does not need the loaders of the host.
      execArgv: [],
    })
    this.#ended = new Promise((resolve) => {
      this.#thread.once('exit', () => resolve())
    })
    this.#thread.once('error', (cause: unknown) => {
      onError(
        new StoreError(
          'unavailable',
          'The thread that renews the leases of this process has stopped. If the event loop is blocked, another process may take over running calls.',
          { cause },
        ),
      )
    })
    // Neither keeps the process alive.
    this.#thread.unref()
    this.#timer = setInterval(() => this.#recordLoopRun(), leaseMs / 8)
    this.#timer.unref()
  }

  setBusy(busy: boolean): void {
    this.#recordLoopRun()
    // Claiming a call or locking a chat has renewed the lease.
    if (busy) Atomics.store(this.#shared, RENEWED_AT, process.hrtime.bigint())
    Atomics.store(this.#shared, BUSY, busy ? 1n : 0n)
  }

  /** Records that the event loop has renewed the lease itself. */
  recordRenewal(): void {
    Atomics.store(this.#shared, RENEWED_AT, process.hrtime.bigint())
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    // `close()` waits for the thread, so the process must stay alive until it has ended.
    this.#thread.ref()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
    this.#thread.postMessage('close')
    await this.#ended
  }

  #recordLoopRun(): void {
    Atomics.store(this.#shared, LOOP_RAN_AT, process.hrtime.bigint())
  }
}

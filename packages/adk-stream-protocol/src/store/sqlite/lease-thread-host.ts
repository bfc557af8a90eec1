import { Worker } from 'node:worker_threads'

import type { LeaseRenewal, LeaseOptions } from '../../approvals/approval-store.ts'
import { StoreError } from '../store-error.ts'

/**
 * Indices of the array that both threads share: when the event loop last ran, when the lease was last renewed (both
 * in ns of the monotonic clock), and whether the process is busy.
 */
const [LOOP_RAN_AT, RENEWED_AT, BUSY] = [0, 1, 2]

/** What the thread needs in order to renew a lease. */
export interface LeaseThreadData {
  readonly path: string
  readonly worker: string
  readonly leaseMs: number
  readonly maxBlockedMs: number
  readonly shared: BigInt64Array
}

/** A message to the thread. */
export type LeaseThreadRequest =
  | { readonly type: 'start'; readonly id: number; readonly data: LeaseThreadData }
  | { readonly type: 'stop'; readonly id: number }
  | { readonly type: 'end' }

/** A message from the thread. */
export interface LeaseThreadReply {
  readonly type: 'stopped' | 'failed'
  readonly id: number
  readonly error?: unknown
}

/** Renews the lease of a worker in a separate thread while the event loop of this thread is blocked. */
export class ThreadedRenewal implements LeaseRenewal {
  readonly #shared = new BigInt64Array(new SharedArrayBuffer(3 * BigInt64Array.BYTES_PER_ELEMENT))
  readonly #timer: NodeJS.Timeout
  readonly #stop: () => Promise<void>

  constructor(path: string, { worker, leaseMs, maxBlockedMs, onError }: LeaseOptions) {
    this.#recordLoopRun()
    const data = { path, worker, leaseMs, maxBlockedMs, shared: this.#shared }
    this.#stop = LeaseThread.ofProcess().start(data, onError)
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
    await this.#stop()
  }

  #recordLoopRun(): void {
    Atomics.store(this.#shared, LOOP_RAN_AT, process.hrtime.bigint())
  }
}

/** How long the thread stays when it has nothing to renew, in ms. A process often closes a store and opens another. */
const UNUSED_MS = 10_000

interface Renewal {
  readonly onError: (error: unknown) => void
  /** Set while the renewal is being stopped. */
  onStopped?: () => void
}

/** The thread of this process that renews leases. All stores share it, because the start of a thread is expensive. */
class LeaseThread {
  static #ofProcess: LeaseThread | undefined

  static ofProcess(): LeaseThread {
    return (LeaseThread.#ofProcess ??= new LeaseThread())
  }

  readonly #worker: Worker
  readonly #renewals = new Map<number, Renewal>()
  #lastId = 0
  #unused: NodeJS.Timeout | undefined

  constructor() {
    this.#worker = new Worker(new URL('./lease-thread.js', import.meta.url), {
      name: 'adk-stream-protocol lease',
      // The thread does not need the loaders of the host.
      execArgv: [],
    })
    this.#worker.on('message', (reply: LeaseThreadReply) => this.#handle(reply))
    this.#worker.once('error', (cause: unknown) => this.#handleEnd(cause))
    this.#worker.once('exit', () => this.#handleEnd())
    // It does not keep the process alive.
    this.#worker.unref()
  }

  /** Starts to renew a lease. Returns a function that stops it, and waits until the database is closed. */
  start(data: LeaseThreadData, onError: (error: unknown) => void): () => Promise<void> {
    clearTimeout(this.#unused)
    const id = (this.#lastId += 1)
    this.#renewals.set(id, { onError })
    this.#post({ type: 'start', id, data })
    return () => this.#stop(id)
  }

  async #stop(id: number): Promise<void> {
    const renewal = this.#renewals.get(id)
    if (!renewal) return
    // The caller waits for the thread, so the process must stay alive until it has answered.
    this.#worker.ref()
    await new Promise<void>((resolve) => {
      renewal.onStopped = resolve
      this.#post({ type: 'stop', id })
    })
  }

  #handle({ type, id, error }: LeaseThreadReply): void {
    const renewal = this.#renewals.get(id)
    if (type === 'failed') return renewal?.onError(stoppedError(error))
    this.#renewals.delete(id)
    renewal?.onStopped?.()
    if ([...this.#renewals.values()].some(({ onStopped }) => onStopped)) return
    this.#worker.unref()
    if (this.#renewals.size === 0) {
      this.#unused = setTimeout(() => this.#end(), UNUSED_MS)
      this.#unused.unref()
    }
  }

  #end(): void {
    this.#forget()
    this.#post({ type: 'end' })
  }

  #handleEnd(cause?: unknown): void {
    this.#forget()
    const renewals = [...this.#renewals.values()]
    this.#renewals.clear()
    for (const { onError, onStopped } of renewals) {
      if (onStopped) onStopped()
      else onError(stoppedError(cause))
    }
  }

  /** The next lease gets a new thread. */
  #forget(): void {
    clearTimeout(this.#unused)
    if (LeaseThread.#ofProcess === this) LeaseThread.#ofProcess = undefined
  }

  #post(request: LeaseThreadRequest): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
    this.#worker.postMessage(request)
  }
}

function stoppedError(cause: unknown): StoreError {
  return new StoreError(
    'unavailable',
    'The thread that renews the leases of this process has stopped. If the event loop is blocked, another process may take over running calls.',
    { cause },
  )
}

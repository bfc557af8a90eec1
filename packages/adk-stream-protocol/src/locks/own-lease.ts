import type { LeaseRenewal, LockStore } from './lock-store.ts'

interface OwnLeaseOptions {
  /** Names this process in the store. */
  readonly worker: string
  /** How long the lease is valid without renewal, in ms. */
  readonly leaseMs: number
  /** How long the event loop may be blocked before the lease expires, in ms. */
  readonly maxBlockedMs: number
  readonly onError: (error: unknown) => void
}

/** The lease of one process, which is renewed while the process holds anything: a chat lock or a running call. */
export class OwnLease {
  readonly worker: string
  readonly leaseMs: number
  readonly #store: LockStore
  readonly #options: OwnLeaseOptions
  readonly #held = new Set<string>()
  #renewal: LeaseRenewal | undefined

  constructor(store: LockStore, options: OwnLeaseOptions) {
    this.worker = options.worker
    this.leaseMs = options.leaseMs
    this.#store = store
    this.#options = options
  }

  /** Whether the process holds anything that another one would take over when the lease expires. */
  get busy(): boolean {
    return this.#held.size > 0
  }

  hold(key: string): void {
    this.#held.add(key)
    if (this.#held.size === 1) this.#setBusy(true)
  }

  release(key: string): void {
    if (this.#held.delete(key) && this.#held.size === 0) this.#setBusy(false)
  }

  #setBusy(isBusy: boolean): void {
    this.#renewal ??= this.#store.startLeaseRenewal?.(this.#options)
    this.#renewal?.setBusy(isBusy)
  }
}

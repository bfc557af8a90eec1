import type { LiveSnapshot } from './live-snapshot.ts'

export interface SnapshotSaverOptions {
  /** Returns the present snapshot, with a handle if the conversation is at rest. Returns undefined if the conversation has ended. */
  readonly take: () => LiveSnapshot | undefined
  readonly save: (snapshot: LiveSnapshot) => void
}

/** How long after a handle the session is stored: ADK yields the events of the turn after the handle. */
const REST_MS = 200
const REST_ATTEMPTS = 5

/** Stores snapshots of a live session, so that another process can continue it after a crash. */
export class SnapshotSaver {
  readonly #options: SnapshotSaverOptions
  #timer: NodeJS.Timeout | undefined
  #hasCalls = false

  constructor(options: SnapshotSaverOptions) {
    this.#options = options
  }

  /** Whether the last stored snapshot has calls. */
  get hasCalls(): boolean {
    return this.#hasCalls
  }

  /** Stores a snapshot when the conversation is at rest. */
  saveAtRest(attempts = REST_ATTEMPTS): void {
    clearTimeout(this.#timer)
    if (attempts === 0 || !this.#options.take()) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      const snapshot = this.#options.take()
      if (snapshot?.handle === undefined) this.saveAtRest(attempts - 1)
      else this.#save(snapshot)
    }, REST_MS)
    this.#timer.unref()
  }

  /** Stores which calls wait. The conversation may not be at rest again before a crash. */
  saveCalls(): void {
    // The call is in its new state after this step.
    queueMicrotask(() => {
      const snapshot = this.#options.take()
      if (snapshot) this.#save(snapshot)
    })
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #save(snapshot: LiveSnapshot): void {
    this.#hasCalls = snapshot.calls.length > 0
    this.#options.save(snapshot)
  }
}

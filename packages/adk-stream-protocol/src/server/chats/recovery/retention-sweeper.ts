import {
  type RetentionLimits,
  removeOrphans,
  retentionOf,
  runRetention,
} from '../../../store/remove-data.ts'
import type { AppChatRef } from '../../../shared/chat-ref.ts'
import type { LazyBackend } from '../backend.ts'

/** How long data is kept. What has no limit is kept forever. */
export interface RetentionOptions extends RetentionLimits {
  /** The interval at which old data is removed, in ms. Default: one hour. */
  readonly intervalMs?: number
}

export interface RetentionSweeperOptions extends RetentionOptions {
  readonly backend: LazyBackend
  /** Whether a chat must not be removed, because a live session of this process is open. */
  readonly isInUse: (chat: AppChatRef) => boolean
  /** Whether the sessions of all chats are in the store. Otherwise it cannot tell which chats exist. */
  readonly ownsSessions: boolean
  readonly onRemoved: (chat: AppChatRef) => void
  readonly onError: (error: unknown) => void
}

const HOUR_MS = 3_600_000

/** Removes old data at an interval, one run at a time. Other processes may do the same. */
export class RetentionSweeper {
  readonly #options: RetentionSweeperOptions
  readonly #timer: NodeJS.Timeout
  readonly #closed = new AbortController()
  #run: Promise<void> | undefined
  /** Entries of the chat list without a chat, found by the last run. */
  #orphans: ReadonlySet<string> = new Set()

  constructor(options: RetentionSweeperOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#start(), options.intervalMs ?? HOUR_MS)
    this.#timer.unref()
  }

  /** Starts no further run, and ends the current one after its current step. */
  drain(): void {
    clearInterval(this.#timer)
    this.#closed.abort()
  }

  async close(): Promise<void> {
    this.drain()
    await this.#run
  }

  #start(): void {
    this.#run ??= this.#remove().finally(() => {
      this.#run = undefined
    })
  }

  async #remove(): Promise<void> {
    const { backend, onError, intervalMs: _, ownsSessions, ...limits } = this.#options
    try {
      const { store, ledger, appName } = await backend.get()
      const { signal } = this.#closed
      await runRetention(retentionOf(store), {
        ...limits,
        appName,
        leaseMs: ledger.leaseMs,
        signal,
      })
      if (!ownsSessions || limits.chatsMs === undefined) return
      const run = { appName, found: this.#orphans, signal }
      this.#orphans = await removeOrphans(retentionOf(store), run)
    } catch (error) {
      onError(error)
    }
  }
}

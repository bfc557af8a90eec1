import type { ApprovalNews } from './approval-news.ts'
import type { BackendOnDemand } from '../chats/backend.ts'

export interface NewsPollOptions {
  readonly backend: BackendOnDemand
  readonly news: ApprovalNews
  /** How often the record is read while somebody waits for news. */
  readonly intervalMs: number
  /** Whether anybody here waits for what other processes write: a feed, a client, or a live call that waits for a decision. */
  readonly isAwaited: () => boolean
  readonly onError: (error: unknown) => void
}

/** How often the end of the record is noted while nobody waits for news. */
const IDLE_MS = 1_000

/** Reads at intervals what other processes wrote about approvals. One read at a time. */
export class NewsPoll {
  readonly #options: NewsPollOptions
  readonly #timer: NodeJS.Timeout
  #reading: Promise<void> | undefined
  #skippedAt = 0

  constructor(options: NewsPollOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#begin(), options.intervalMs)
    this.#timer.unref()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#reading
  }

  #begin(): void {
    if (!this.#options.isAwaited() && performance.now() - this.#skippedAt < IDLE_MS) return
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
  }

  async #read(): Promise<void> {
    const { backend, news, isAwaited, onError } = this.#options
    try {
      const opened = await backend.peek()
      if (!opened) return
      if (isAwaited()) return await news.read(opened.ledger)
      this.#skippedAt = performance.now()
      await news.skip(opened.ledger, isAwaited)
    } catch (error) {
      onError(error)
    }
  }
}

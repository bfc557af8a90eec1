import AsyncDatabase from 'libsql/promise'

/** After how many commits the log is moved. */
const COMMITS = 200

/**
 * Moves the write-ahead log of a database into its file, in a thread of libsql. SQLite would do this at a commit, and the event loop
 * would wait for the disk: the log, the pages of the file, and the log again.
 */
export class BackgroundCheckpoints {
  readonly #path: string
  #database: AsyncDatabase | undefined
  #running: Promise<void> | undefined
  #commits = 0
  #isClosed = false

  constructor(path: string) {
    this.#path = path
  }

  /** Counts a commit, and moves the log from time to time. */
  countCommit(): void {
    this.#commits += 1
    if (this.#commits < COMMITS || this.#running || this.#isClosed) return
    this.#commits = 0
    this.#running = this.#move().finally(() => {
      this.#running = undefined
    })
  }

  /** Closes the connection. Resolves when the last move has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
    this.#database?.close()
    this.#database = undefined
  }

  async #move(): Promise<void> {
    try {
      this.#database ??= new AsyncDatabase(this.#path, {})
      // Does not wait for other connections, nor they for it.
      await this.#database.exec('PRAGMA wal_checkpoint(PASSIVE)')
    } catch {
      // The log stays, and the next move includes it.
    }
  }
}

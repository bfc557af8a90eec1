import { statSync } from 'node:fs'

import { StoreError } from '../store-error.ts'

/** How often work that does not wait for the disk checks the file, in ms. */
const CHECK_MS = 100

/**
 * Checks that a path still leads to the file that a connection has opened. SQLite continues to write to a file that was deleted or replaced:
 * what it acknowledges is lost when the process ends, and other processes, which open the new file, do not see it.
 */
export class DatabaseFile {
  readonly #path: string
  #id: string | undefined
  #checkedAt = -Infinity

  constructor(path: string) {
    this.#path = path
  }

  /** Throws if the file was deleted or replaced. */
  check(): void {
    const file = statSync(this.#path, { throwIfNoEntry: false })
    const id = file && `${file.dev}:${file.ino}`
    this.#checkedAt = performance.now()
    // A database in memory has no file.
    this.#id ??= id
    if (id === this.#id) return
    const sentence = `The database file ${this.#path} was deleted or replaced while the process used it. Restore the file, and restart the process.`
    throw new StoreError('corrupt', sentence)
  }

  /** Like `check`, at most once per interval. */
  checkSometimes(): void {
    if (performance.now() - this.#checkedAt >= CHECK_MS) this.check()
  }
}

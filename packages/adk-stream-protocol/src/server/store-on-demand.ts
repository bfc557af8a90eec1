import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Store } from '../store/store.ts'

/** The store of the host, or one of our own that is opened when something needs it. */
export class StoreOnDemand {
  readonly #given: Store | Promise<Store> | undefined
  #own: Promise<Store> | undefined

  constructor(given: Store | Promise<Store> | undefined) {
    this.#given = given
    // Whether it could be opened is for the first request to find out.
    if (given instanceof Promise) given.catch(() => undefined)
  }

  async open(): Promise<Store> {
    if (this.#given) return this.#given
    this.#own ??= openSqliteStore({ path: ':memory:' })
    return this.#own
  }

  async close(): Promise<void> {
    const own = await this.#own
    await own?.close()
  }
}

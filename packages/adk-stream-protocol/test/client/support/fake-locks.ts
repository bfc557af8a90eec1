import { defer } from '../../../src/shared/async.ts'

type Granted = (lock: object | null) => unknown

/** The part of the Web Locks API that is used: one holder, others that wait in order, and others that take the lock from it. */
export class FakeLocks {
  readonly held = new Set<string>()
  /** Functions that take a lock from its holder, by name. */
  readonly #holders = new Map<string, () => void>()
  readonly #line: { readonly name: string; readonly go: () => void }[] = []

  /** The number of waiting requests. */
  get waiting(): number {
    return this.#line.length
  }

  async request(
    name: string,
    { ifAvailable = false, steal = false }: LockOptions,
    granted: Granted,
  ): Promise<unknown> {
    await Promise.resolve()
    if (this.held.has(name)) {
      if (ifAvailable) return granted(null)
      if (steal) this.#holders.get(name)?.()
      else await new Promise<void>((go) => this.#line.push({ name, go }))
    }
    this.held.add(name)
    return new Promise((resolve, reject) => {
      const take = (): void => reject(new DOMException('The lock was stolen.', 'AbortError'))
      this.#holders.set(name, take)
      void Promise.resolve(granted({ name }))
        .then(resolve, reject)
        .finally(() => {
          if (this.#holders.get(name) === take) this.free(name)
        })
    })
  }

  /** Passes a lock to the next request, because its holder has released it or was closed. */
  free(name: string): void {
    this.held.delete(name)
    const next = this.#line.findIndex((each) => each.name === name)
    if (next >= 0) this.#line.splice(next, 1)[0]?.go()
  }
}

/** The locks as one page sees them. When the page is closed, it releases its locks and waits for no more. */
export class PageLocks {
  readonly #locks: FakeLocks
  readonly #closed = defer()
  #isClosed = false

  constructor(locks: FakeLocks) {
    this.#locks = locks
  }

  request(name: string, options: LockOptions, granted: Granted): Promise<unknown> {
    return this.#locks.request(name, options, (lock) =>
      this.#isClosed ? undefined : Promise.race([granted(lock), this.#closed.promise]),
    )
  }

  close(): void {
    this.#isClosed = true
    this.#closed.resolve()
  }
}

/** Runs work with the same key one after the other, in the order of the calls. */
export class KeyedQueue {
  readonly #last = new Map<string, Promise<unknown>>()

  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key)
    const result = before === undefined ? work() : before.then(work)
    const settled = result.catch(() => undefined)
    this.#last.set(key, settled)
    try {
      return await result
    } finally {
      if (this.#last.get(key) === settled) this.#last.delete(key)
    }
  }
}

type Granted = (lock: object | null) => unknown

/** The part of the Web Locks API that is used: one holder, and others that wait in order. */
export class FakeLocks {
  readonly held = new Set<string>()
  readonly #line: { readonly name: string; readonly go: () => void }[] = []

  /** The number of waiting requests. */
  get waiting(): number {
    return this.#line.length
  }

  async request(
    name: string,
    { ifAvailable = false }: LockOptions,
    granted: Granted,
  ): Promise<unknown> {
    await Promise.resolve()
    if (this.held.has(name)) {
      if (ifAvailable) return granted(null)
      await new Promise<void>((go) => this.#line.push({ name, go }))
    }
    this.held.add(name)
    return Promise.resolve(granted({ name })).finally(() => this.free(name))
  }

  /** Passes a lock to the next request, because its holder has released it or was closed. */
  free(name: string): void {
    this.held.delete(name)
    const next = this.#line.findIndex((each) => each.name === name)
    if (next >= 0) this.#line.splice(next, 1)[0]?.go()
  }
}

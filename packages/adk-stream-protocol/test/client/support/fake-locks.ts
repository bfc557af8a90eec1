type Granted = (lock: object | null) => unknown

/** Locks as browsers have them among their tabs, as far as they are used: one holder, the others wait in line. */
export class FakeLocks {
  readonly held = new Set<string>()
  readonly #line: { readonly name: string; readonly go: () => void }[] = []

  /** How many wait. */
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

  /** Gives a lock to the next in line: its holder is done, or gone. */
  free(name: string): void {
    this.held.delete(name)
    const next = this.#line.findIndex((each) => each.name === name)
    if (next >= 0) this.#line.splice(next, 1)[0]?.go()
  }
}

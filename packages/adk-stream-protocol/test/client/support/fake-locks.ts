/** Locks as browsers have them among their tabs, as far as they are used: one holder, and no waiting. */
export class FakeLocks {
  readonly held = new Set<string>()

  async request(
    name: string,
    _options: { ifAvailable: true },
    callback: (lock: object | null) => unknown,
  ): Promise<unknown> {
    await Promise.resolve()
    if (this.held.has(name)) return callback(null)
    this.held.add(name)
    return Promise.resolve(callback({ name })).finally(() => this.held.delete(name))
  }
}

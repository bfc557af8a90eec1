/** Counts what each key holds at once, up to a limit; a key that holds nothing costs nothing. */
export class Quota {
  readonly #max: number
  readonly #held = new Map<string, number>()

  constructor(max: number) {
    this.#max = max
  }

  /** Takes one for a key, and gives the way to give it back, which counts once; nothing when the key has all that it may. */
  take(key: string): (() => void) | undefined {
    if (!this.tryTake(key)) return undefined
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.giveBack(key)
    }
  }

  /** Takes one for a key, which `giveBack` is called for once; false when the key has all that it may. */
  tryTake(key: string): boolean {
    const held = this.#held.get(key) ?? 0
    if (held >= this.#max) return false
    this.#held.set(key, held + 1)
    return true
  }

  giveBack(key: string): void {
    const left = (this.#held.get(key) ?? 1) - 1
    if (left > 0) this.#held.set(key, left)
    else this.#held.delete(key)
  }
}

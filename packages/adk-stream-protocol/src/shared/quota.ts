/** Counts what each key holds at once, up to a limit. */
export class Quota {
  readonly #max: number
  readonly #held = new Map<string, number>()

  constructor(max: number) {
    this.#max = max
  }

  /** Takes one for a key. Returns a function that releases it once, or undefined if the key is at its limit. */
  take(key: string): (() => void) | undefined {
    if (!this.tryTake(key)) return undefined
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.giveBack(key)
    }
  }

  /** Takes one for a key. Returns false if the key is at its limit. Call `giveBack` once to release it. */
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

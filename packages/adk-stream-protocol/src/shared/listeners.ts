/** Functions to call when something happens. */
export class Listeners<Values extends readonly unknown[] = []> {
  readonly #listeners = new Set<(...values: Values) => void>()

  /** Returns a function that unsubscribes. A listener that is added twice is called twice. */
  add(listener: (...values: Values) => void): () => void {
    const own = (...values: Values): void => listener(...values)
    this.#listeners.add(own)
    return () => void this.#listeners.delete(own)
  }

  call(...values: Values): void {
    for (const listener of this.#listeners) listener(...values)
  }
}

/** A set that takes no memory while it is empty. Each open turn and each idle live chat has several that are empty most of the time. */
export class SparseSet<Value> implements Iterable<Value> {
  #values: Set<Value> | undefined

  get size(): number {
    return this.#values?.size ?? 0
  }

  has(value: Value): boolean {
    return this.#values?.has(value) ?? false
  }

  add(value: Value): void {
    this.#values ??= new Set()
    this.#values.add(value)
  }

  delete(value: Value): void {
    this.#values?.delete(value)
    if (this.#values?.size === 0) this.#values = undefined
  }

  clear(): void {
    this.#values = undefined
  }

  [Symbol.iterator](): Iterator<Value> {
    return (this.#values ?? [])[Symbol.iterator]()
  }
}

/** A map that takes no memory while it is empty. */
export class SparseMap<Key, Value> implements Iterable<[Key, Value]> {
  #entries: Map<Key, Value> | undefined

  get size(): number {
    return this.#entries?.size ?? 0
  }

  has(key: Key): boolean {
    return this.#entries?.has(key) ?? false
  }

  get(key: Key): Value | undefined {
    return this.#entries?.get(key)
  }

  set(key: Key, value: Value): void {
    this.#entries ??= new Map()
    this.#entries.set(key, value)
  }

  delete(key: Key): void {
    this.#entries?.delete(key)
    if (this.#entries?.size === 0) this.#entries = undefined
  }

  clear(): void {
    this.#entries = undefined
  }

  values(): Iterable<Value> {
    return this.#entries?.values() ?? []
  }

  [Symbol.iterator](): Iterator<[Key, Value]> {
    return (this.#entries ?? [])[Symbol.iterator]()
  }
}

/** Deletes the oldest entries of a map or set until it has at most `max` entries. Both iterate in insertion order. */
export function keepNewest<Key>(entries: Map<Key, unknown> | Set<Key>, max: number): void {
  for (const oldest of entries.keys()) {
    if (entries.size <= max) return
    entries.delete(oldest)
  }
}

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

/** Returns the fields of an object that are not undefined, for optional fields that may not be `undefined`. */
export function withoutUndefined<Fields extends object>(
  fields: Fields,
): { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined)
  // The keys are those of `fields`, and no value is `undefined`.
  return Object.fromEntries(defined) as { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> }
}

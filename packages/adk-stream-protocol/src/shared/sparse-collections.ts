/** A set that takes no memory while it is empty. Each idle live chat has several sets that are empty most of the time. */
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

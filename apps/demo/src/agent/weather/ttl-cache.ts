export interface TtlCache<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value): void
}

export interface TtlCacheOptions {
  readonly ttlMs: number
  /** The maximum number of entries. The oldest one is dropped first. */
  readonly capacity: number
  readonly now: () => number
}

/** Creates a cache whose entries expire after `ttlMs`. */
export function createTtlCache<Value>({ ttlMs, capacity, now }: TtlCacheOptions): TtlCache<Value> {
  const entries = new Map<string, { readonly value: Value; readonly expiresAt: number }>()
  return {
    get(key) {
      const entry = entries.get(key)
      if (entry && entry.expiresAt > now()) return entry.value
      entries.delete(key)
      return undefined
    },
    set(key, value) {
      entries.delete(key)
      entries.set(key, { value, expiresAt: now() + ttlMs })
      const [oldest] = entries.keys()
      if (entries.size > capacity && oldest !== undefined) entries.delete(oldest)
    },
  }
}

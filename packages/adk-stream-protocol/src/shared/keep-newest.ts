/** Deletes the oldest entries of a map or set until it has at most `max` entries. Both iterate in insertion order. */
export function keepNewest<Key>(entries: Map<Key, unknown> | Set<Key>, max: number): void {
  for (const oldest of entries.keys()) {
    if (entries.size <= max) return
    entries.delete(oldest)
  }
}

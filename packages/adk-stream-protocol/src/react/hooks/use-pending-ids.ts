import { useCallback, useRef, useState } from 'react'

const NO_IDS: ReadonlySet<string> = new Set()

/** Tracks operations in progress by id. A ref rejects a second click before the next render. */
export function usePendingIds() {
  const [pending, setPending] = useState(NO_IDS)
  const ids = useRef(new Set<string>())
  /** Returns false if the operation is already in progress. */
  const add = useCallback((id: string): boolean => {
    if (ids.current.has(id)) return false
    setPending(new Set(ids.current.add(id)))
    return true
  }, [])
  const remove = useCallback((id: string): void => {
    ids.current.delete(id)
    setPending(new Set(ids.current))
  }, [])
  return { pending, add, remove }
}

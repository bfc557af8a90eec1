import { useCallback, useRef, useState } from 'react'

const NOTHING: ReadonlySet<string> = new Set()

/** What is under way, by id: each once. Known at once, and not only at the next rendering, by which a second click may have come. */
export function useUnderWay() {
  const [deciding, setDeciding] = useState(NOTHING)
  const ids = useRef(new Set<string>())
  /** False when it is under way already. */
  const begin = useCallback((id: string): boolean => {
    if (ids.current.has(id)) return false
    setDeciding(new Set(ids.current.add(id)))
    return true
  }, [])
  const end = useCallback((id: string): void => {
    ids.current.delete(id)
    setDeciding(new Set(ids.current))
  }, [])
  return { deciding, begin, end }
}

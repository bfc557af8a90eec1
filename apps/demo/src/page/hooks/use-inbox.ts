import { useCallback, useEffect, useRef, useState } from 'react'

import { listPending, type Pending } from '../chat/approvals-api.ts'

export interface InboxState {
  readonly pending: readonly Pending[]
  readonly refresh: () => void
}

const INTERVAL_MS = 15_000
const NOTHING: readonly Pending[] = []

/** What waits for the reader's decision in all chats; looked up at intervals while the page is seen, and when asked to. */
export function useInbox(): InboxState {
  const [pending, setPending] = useState(NOTHING)
  const latest = useRef(0)
  const refresh = useCallback(() => {
    const turn = (latest.current += 1)
    const look = async () => {
      const list = await listPending()
      // An answer that was overtaken by a later one is out of date.
      if (turn === latest.current) setPending((known) => (isSame(known, list) ? known : list))
    }
    // The list stays as it is while the server cannot be asked.
    look().catch(() => undefined)
  }, [])
  useEffect(() => {
    const look = () => {
      if (document.visibilityState === 'visible') refresh()
    }
    look()
    const timer = setInterval(look, INTERVAL_MS)
    document.addEventListener('visibilitychange', look)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', look)
    }
  }, [refresh])
  return { pending, refresh }
}

function isSame(known: readonly Pending[], list: readonly Pending[]): boolean {
  return JSON.stringify(known) === JSON.stringify(list)
}

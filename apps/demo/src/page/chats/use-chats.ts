import { useEffect, useState, useSyncExternalStore } from 'react'

import { chatsApi } from './chats-api.ts'
import { ChatsStore } from './chats-store.ts'

const INTERVAL_MS = 15_000
/** While something is being written in one of them. */
const BUSY_INTERVAL_MS = 3000

/** The chats of the reader; looked up at intervals while the page is seen, and when asked to. */
export function useChats() {
  const [store] = useState(() => new ChatsStore(chatsApi))
  const list = useSyncExternalStore(store.subscribe, store.read)
  const busy = list.chats.some(({ running }) => running)
  useEffect(() => {
    const look = () => {
      if (document.visibilityState === 'visible') void store.refresh()
    }
    look()
    const timer = setInterval(look, busy ? BUSY_INTERVAL_MS : INTERVAL_MS)
    document.addEventListener('visibilitychange', look)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', look)
    }
  }, [store, busy])
  return { store, list }
}

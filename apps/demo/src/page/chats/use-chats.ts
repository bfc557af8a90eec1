import { useEffect, useState, useSyncExternalStore } from 'react'

import { api } from '../wire/wire.ts'
import { ChatsStore } from './chats-store.ts'

/** The chats of the reader; read when the feed of the page opens, so that no change is missed, and when it tells of one. */
export function useChats() {
  const [store] = useState(() => new ChatsStore(api))
  const list = useSyncExternalStore(store.subscribe, store.read)
  useEffect(() => {
    let isRead = false
    return api.watch(({ type }) => {
      // Without a feed the list is read once, and again when there is one.
      if (type === 'lost' && isRead) return
      isRead = true
      void store.refresh()
    })
  }, [store])
  return { store, list }
}

import { useEffect, useState, useSyncExternalStore } from 'react'

import { api } from '../wire/wire.ts'
import { ChatsStore } from './chats-store.ts'

/** The chats of the reader; read anew when the server says that something changed, which may be news for others too. */
export function useChats(onChange: () => void) {
  const [store] = useState(() => new ChatsStore(api))
  const list = useSyncExternalStore(store.subscribe, store.read)
  useEffect(
    () =>
      watchLists(() => {
        void store.refresh()
        onChange()
      }),
    [store, onChange],
  )
  return { store, list }
}

/**
 * Watches while the page is seen: a browser has few connections to a server, and tabs that nobody looks at should not hold them.
 * Whatever was missed meanwhile is read when the feed opens.
 */
function watchLists(onChange: () => void): () => void {
  let feed: EventSource | undefined
  const look = () => {
    const seen = document.visibilityState === 'visible'
    if (seen && !feed) {
      feed = new EventSource('/events')
      feed.addEventListener('open', onChange)
      feed.addEventListener('message', onChange)
    } else if (!seen) {
      feed?.close()
      feed = undefined
    }
  }
  onChange()
  look()
  document.addEventListener('visibilitychange', look)
  return () => {
    document.removeEventListener('visibilitychange', look)
    feed?.close()
  }
}

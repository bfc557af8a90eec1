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

/** Watches by the feed of the whole page, which rests while nobody sees it. Whatever was missed meanwhile is read when it opens. */
function watchLists(onChange: () => void): () => void {
  onChange()
  return api.watch(({ type }) => {
    if (type !== 'lost') onChange()
  })
}

import { useEffect, useState, useSyncExternalStore } from 'react'

import { api } from '../wire/wire.ts'
import { ChatsStore } from './chats-store.ts'

/** How long changes are collected before the list is loaded again, in ms. */
const MERGE_MS = 50

/** Returns the chats of the person. Loads them when the feed opens, so that no change is missed, and when it reports a change. */
export function useChats() {
  const [store] = useState(() => new ChatsStore(api))
  const list = useSyncExternalStore(store.subscribe, store.read)
  useEffect(() => follow(store), [store])
  return { store, list }
}

/** Loads the list again when the feed reports a change. Returns a function that stops it. */
function follow(store: ChatsStore): () => void {
  let isLoaded = false
  let pendingRefresh: ReturnType<typeof setTimeout> | undefined
  const refresh = (): void => {
    pendingRefresh = undefined
    void store.refresh()
  }
  const unwatch = api.watch(({ type }) => {
    // If an approval changes, the feed also reports its chat.
    if (type === 'approval') return
    // Without a feed, the list is loaded once, and again when the feed opens.
    if (type === 'lost' && isLoaded) return
    pendingRefresh ??= setTimeout(refresh, isLoaded ? MERGE_MS : 0)
    isLoaded = true
  })
  return () => {
    unwatch()
    clearTimeout(pendingRefresh)
  }
}

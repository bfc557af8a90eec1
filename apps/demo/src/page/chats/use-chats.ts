import { useEffect, useState, useSyncExternalStore } from 'react'

import { api } from '../wire/wire.ts'
import { ChatsStore } from './chats-store.ts'

/** For how long changes are collected before the list is read again, in ms. */
const MERGE_MS = 50

/** The chats of the reader; read when the feed of the page opens, so that no change is missed, and when it tells of one. */
export function useChats() {
  const [store] = useState(() => new ChatsStore(api))
  const list = useSyncExternalStore(store.subscribe, store.read)
  useEffect(() => follow(store), [store])
  return { store, list }
}

/** Reads the list anew when the feed tells of a change. Give back ends it. */
function follow(store: ChatsStore): () => void {
  let isRead = false
  let soon: ReturnType<typeof setTimeout> | undefined
  const refresh = (): void => {
    soon = undefined
    void store.refresh()
  }
  const unwatch = api.watch(({ type }) => {
    // A chat whose approval changed is told of as a chat, too.
    if (type === 'approval') return
    // Without a feed the list is read once, and again when there is one.
    if (type === 'lost' && isRead) return
    soon ??= setTimeout(refresh, isRead ? MERGE_MS : 0)
    isRead = true
  })
  return () => {
    unwatch()
    clearTimeout(soon)
  }
}

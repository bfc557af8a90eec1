import { useEffect, useState } from 'react'

import { loadChat, type SavedChat } from '../chat/chat-api.ts'
import type { ChatLocation } from './use-chat-location.ts'

export type Loading =
  | { readonly state: 'loading' }
  | { readonly state: 'ready'; readonly chat: SavedChat }
  | { readonly state: 'missing' }
  | { readonly state: 'failed' }

const EMPTY: Loading = { state: 'ready', chat: { messages: [], running: false } }

/** Reads the messages of a chat that the address names; a new chat is ready at once. */
export function useSavedChat({ id, isNew }: ChatLocation): Loading {
  const [loading, setLoading] = useState<Loading>(isNew ? EMPTY : { state: 'loading' })
  useEffect(() => {
    if (isNew) return
    const leaving = new AbortController()
    loadChat(id, leaving.signal).then(
      (chat) => setLoading(chat ? { state: 'ready', chat } : { state: 'missing' }),
      () => {
        if (!leaving.signal.aborted) setLoading({ state: 'failed' })
      },
    )
    return () => leaving.abort()
  }, [id, isNew])
  return loading
}

import type { LoadedChat } from 'adk-stream-protocol/client'
import { useEffect, useState } from 'react'

import { storesChats, type Mode } from '../settings/mode.ts'
import type { ChatLocation } from '../shell/use-chat-location.ts'
import { api } from '../wire/wire.ts'
import { readDirectChat } from './direct-chat.ts'

/** A stored chat, and the mode for which it was loaded. */
export type Loading =
  | { readonly state: 'loading'; readonly mode?: never }
  | { readonly state: 'ready'; readonly chat: LoadedChat; readonly mode: Mode }
  | { readonly state: 'missing' | 'failed'; readonly mode: Mode }

const EMPTY: LoadedChat = { messages: [], running: false }

/**
 * Loads the messages of the chat in the URL. A new chat is ready at once. If the mode changes, the chat is loaded again, because a
 * reply may be running. Until then, the chat is shown as it was in the previous mode.
 */
export function useSavedChat({ id, isNew }: ChatLocation, mode: Mode): Loading {
  const [wasNew] = useState(isNew)
  const [loading, setLoading] = useState(() => initialState(isNew, mode))
  const isLoaded = loading.mode === mode
  useEffect(() => {
    if (isLoaded) return
    let isCancelled = false
    const read = async (): Promise<void> => {
      const next = await readChat(id, { mode, wasNew })
      if (!isCancelled) setLoading(next)
    }
    void read()
    return () => {
      isCancelled = true
    }
  }, [id, mode, isLoaded, wasNew])
  return loading
}

interface LoadOptions {
  readonly mode: Mode
  /** Whether the chat may still be empty. */
  readonly wasNew: boolean
}

async function readChat(id: string, { mode, wasNew }: LoadOptions): Promise<Loading> {
  try {
    const chat = await api.loadChat(id)
    // The server does not reveal whether the chat exists for another person.
    const exists = wasNew || chat.running || chat.messages.length > 0
    return exists ? { state: 'ready', chat, mode } : { state: 'missing', mode }
  } catch {
    // The page shows the failure with a button to try again.
    return { state: 'failed', mode }
  }
}

function initialState(isNew: boolean, mode: Mode): Loading {
  if (!storesChats(mode)) return { state: 'ready', chat: { ...EMPTY, ...readDirectChat() }, mode }
  return isNew ? { state: 'ready', chat: EMPTY, mode } : { state: 'loading' }
}

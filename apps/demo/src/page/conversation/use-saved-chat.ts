import type { LoadedChat } from 'adk-stream-protocol/client'
import { useEffect, useState } from 'react'

import { storesChats, type Mode } from '../settings/mode.ts'
import type { ChatLocation } from '../shell/use-chat-location.ts'
import { api } from '../wire/wire.ts'
import { readDirectChat } from './direct-chat.ts'

/** A chat as it is known, and the mode that it was read for. */
export type Loading =
  | { readonly state: 'loading'; readonly mode?: never }
  | { readonly state: 'ready'; readonly chat: LoadedChat; readonly mode: Mode }
  | { readonly state: 'missing' | 'failed'; readonly mode: Mode }

const EMPTY: LoadedChat = { messages: [], running: false }

/**
 * Reads the messages of a chat that the address names; a new chat is ready at once. In another mode it is read again, because an
 * answer may be under way: until that is done, the chat is as it was, for the mode before.
 */
export function useSavedChat({ id, isNew }: ChatLocation, mode: Mode): Loading {
  const [wasNew] = useState(isNew)
  const [loading, setLoading] = useState(() => begin(isNew, mode))
  const isRead = loading.mode === mode
  useEffect(() => {
    if (isRead) return
    let isLeft = false
    const read = async (): Promise<void> => {
      const next = await readChat(id, { mode, wasNew })
      if (!isLeft) setLoading(next)
    }
    void read()
    return () => {
      isLeft = true
    }
  }, [id, mode, isRead, wasNew])
  return loading
}

interface Asked {
  readonly mode: Mode
  /** Whether it may be that nothing was said in it yet. */
  readonly wasNew: boolean
}

async function readChat(id: string, { mode, wasNew }: Asked): Promise<Loading> {
  try {
    const chat = await api.loadChat(id)
    // The server does not tell whether somebody else has a chat of this name.
    const isThere = wasNew || chat.running || chat.messages.length > 0
    return isThere ? { state: 'ready', chat, mode } : { state: 'missing', mode }
  } catch {
    // The reader is told, and can try again.
    return { state: 'failed', mode }
  }
}

function begin(isNew: boolean, mode: Mode): Loading {
  if (!storesChats(mode)) return { state: 'ready', chat: { ...EMPTY, ...readDirectChat() }, mode }
  return isNew ? { state: 'ready', chat: EMPTY, mode } : { state: 'loading' }
}

import { useCallback, useEffect, useState } from 'react'

import { navigate } from './navigate.ts'

/** The open chat. An empty chat is not in the URL. */
export interface ChatLocation {
  readonly id: string
  readonly isNew: boolean
}

/** Keeps the chat id in the URL (`/?chat=…`) for reloads, bookmarks and the back button. */
export function useChatLocation() {
  const [location, setLocation] = useState(readLocation)
  useEffect(() => {
    const follow = () => setLocation(readLocation())
    window.addEventListener('popstate', follow)
    return () => window.removeEventListener('popstate', follow)
  }, [])
  const go = useCallback((url: string) => {
    navigate(url)
    setLocation(readLocation())
  }, [])
  const startNew = useCallback(() => go('/'), [go])
  /** Opens a chat. Also called for the open chat after its first message. */
  const open = useCallback(
    (id: string) => {
      if (id === sessionStorage.getItem(NEW_CHAT)) sessionStorage.removeItem(NEW_CHAT)
      go(chatUrl(id))
    },
    [go],
  )
  return { location, startNew, open }
}

export function chatUrl(id: string): string {
  return `/?chat=${encodeURIComponent(id)}`
}

function readLocation(): ChatLocation {
  const id = new URLSearchParams(window.location.search).get('chat')
  return id && /^[\w.~:-]{1,128}$/.test(id)
    ? { id, isNew: false }
    : { id: findNewChat(), isNew: true }
}

const NEW_CHAT = 'new-chat'

/** Returns the id of the chat of this tab that has no message yet. It survives a reload, and so does its draft. */
function findNewChat(): string {
  const id = sessionStorage.getItem(NEW_CHAT) ?? crypto.randomUUID()
  sessionStorage.setItem(NEW_CHAT, id)
  return id
}

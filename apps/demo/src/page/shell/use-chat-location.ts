import { useCallback, useEffect, useState } from 'react'

/** Which chat is open. A chat that nothing was said in yet is not in the address. */
export interface ChatLocation {
  readonly id: string
  readonly isNew: boolean
}

/** Keeps the chat in the address (`/?chat=…`), so that a reload, a bookmark and the back button find it. */
export function useChatLocation() {
  const [location, setLocation] = useState(readLocation)
  useEffect(() => {
    const follow = () => setLocation(readLocation())
    window.addEventListener('popstate', follow)
    return () => window.removeEventListener('popstate', follow)
  }, [])
  const go = useCallback((address: string) => {
    if (window.location.pathname + window.location.search !== address) {
      window.history.pushState(null, '', address)
    }
    setLocation(readLocation())
  }, [])
  const startNew = useCallback(() => go('/'), [go])
  /** Also of a chat that is open, once something was said in it. */
  const open = useCallback((id: string) => go(chatUrl(id)), [go])
  return { location, startNew, open }
}

export function chatUrl(id: string): string {
  return `/?chat=${encodeURIComponent(id)}`
}

function readLocation(): ChatLocation {
  const id = new URLSearchParams(window.location.search).get('chat')
  return id && /^[\w.~:-]{1,128}$/.test(id)
    ? { id, isNew: false }
    : { id: crypto.randomUUID(), isNew: true }
}

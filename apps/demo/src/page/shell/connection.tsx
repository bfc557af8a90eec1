import { ConnectionBadge, useConnection } from 'adk-stream-protocol/react'
import { useSyncExternalStore } from 'react'

import { useMode } from '../settings/mode.ts'
import { transports } from '../wire/wire.ts'

/** Shows that there is a connection. A notice in the conversation says when it is lost. */
export function Connection() {
  const [mode] = useMode()
  const connection = useConnection(transports[mode])
  const isOnline = useSyncExternalStore(subscribe, () => navigator.onLine)
  const isOpen = connection.state === 'open' || connection.state === 'connecting'
  return isOpen && isOnline ? <ConnectionBadge connection={connection} /> : null
}

function subscribe(listener: () => void): () => void {
  window.addEventListener('online', listener)
  window.addEventListener('offline', listener)
  return () => {
    window.removeEventListener('online', listener)
    window.removeEventListener('offline', listener)
  }
}

import { useCallback, useSyncExternalStore } from 'react'

import type { Connected, ConnectionState } from '../../client/transports/connection-state.ts'

const IDLE: ConnectionState = { state: 'idle' }

/** Returns the state of a transport's connection. Always `idle` for a transport that does not report it. */
export function useConnection(transport: object): ConnectionState {
  const connected = isConnected(transport) ? transport : undefined
  const subscribe = useCallback(
    (listener: () => void) => connected?.onConnection(listener) ?? (() => undefined),
    [connected],
  )
  const read = (): ConnectionState => connected?.connection ?? IDLE
  return useSyncExternalStore(subscribe, read, read)
}

function isConnected(transport: object): transport is Connected {
  return 'onConnection' in transport && typeof transport.onConnection === 'function'
}

/** Returns whether the browser is online. */
export function useIsOnline(): boolean {
  return useSyncExternalStore(
    onOnlineChange,
    () => navigator.onLine,
    () => true,
  )
}

function onOnlineChange(listener: () => void): () => void {
  window.addEventListener('online', listener)
  window.addEventListener('offline', listener)
  return () => {
    window.removeEventListener('online', listener)
    window.removeEventListener('offline', listener)
  }
}

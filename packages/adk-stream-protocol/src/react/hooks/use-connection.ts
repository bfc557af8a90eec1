import { useCallback, useSyncExternalStore } from 'react'

import type { Identified } from '../../client/connection/principal-tag.ts'
import type { Connected, ConnectionState } from '../../client/connection/connection-state.ts'

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

/**
 * Returns the key of a chat's draft: the tag of the person and the id of the chat. Undefined before the tag is known. For a chat without
 * a bridge, its id.
 */
export function useDraftKey(chatId: string, transport: object, api: object | undefined) {
  const own = isIdentified(transport) ? transport : undefined
  const other = api && isIdentified(api) ? api : undefined
  const subscribe = useCallback(
    (listener: () => void) => {
      const unsubscribe = [own, other].map((each) => each?.onPrincipal(listener))
      return () => {
        for (const leave of unsubscribe) leave?.()
      }
    },
    [own, other],
  )
  // Messages are sent as the principal of the transport.
  const read = (): string | undefined => own?.principal ?? other?.principal
  const principal = useSyncExternalStore(subscribe, read, read)
  if (!own && !other) return chatId
  return principal === undefined ? undefined : `${principal}:${chatId}`
}

function isIdentified(value: object): value is Identified {
  return 'onPrincipal' in value && typeof value.onPrincipal === 'function'
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

import { Listeners } from '../../shared/collections.ts'
import { sleep } from '../../shared/backoff.ts'

/**
 * `idle`: nothing needs a connection. `connecting`: the first one is being opened. `open`. `lost`: the connection was lost and is opened
 * again at `retryAt` (ms since 1970), or is being opened now. `closed`: given up until the next request.
 */
export interface ConnectionState {
  readonly state: 'idle' | 'connecting' | 'open' | 'lost' | 'closed'
  readonly retryAt?: number
  /** The number of the attempt to reconnect, from 1. */
  readonly attempt?: number
  /** Whether the server rejects the credentials of the page: the person has to sign in again. */
  readonly isSignedOut?: boolean
}

/**
 * Called when the state of a connection changes.
 *
 * @inline
 */
export type ConnectionListener = (connection: ConnectionState) => void

/** A transport that reports the state of its connection. */
export interface Connected {
  /** The same object until the state changes. */
  readonly connection: ConnectionState
  onConnection(listener: ConnectionListener): () => void
}

/** The state of a connection, with its listeners. */
export interface ConnectionStatus {
  readonly current: ConnectionState
  set(next: ConnectionState): void
  /** Returns a function that unsubscribes. */
  subscribe(listener: ConnectionListener): () => void
}

export function createConnectionStatus(): ConnectionStatus {
  const listeners = new Listeners<[ConnectionState]>()
  let current: ConnectionState = { state: 'idle' }
  return {
    get current() {
      return current
    },
    set: (next) => {
      const { state, retryAt, attempt, isSignedOut } = current
      const isSame = next.retryAt === retryAt && next.attempt === attempt
      if (isSame && next.state === state && next.isSignedOut === isSignedOut) return
      current = next
      listeners.call(next)
    },
    subscribe: (listener) => listeners.add(listener),
  }
}

/** The states in the order in which they are shown. */
const ORDER = ['lost', 'open', 'connecting', 'idle', 'closed'] as const

/** Combines the states of several requests into one: `lost` if any is lost, otherwise the best one. */
export interface SharedConnection {
  readonly status: ConnectionStatus
  /** Reports the state of a request. `undefined`: the request has ended. */
  report(request: object, state: ConnectionState | undefined): void
}

export function createSharedConnection(): SharedConnection {
  const status = createConnectionStatus()
  const requests = new Map<object, ConnectionState>()
  return {
    status,
    report: (request, state) => {
      if (state) requests.set(request, state)
      else requests.delete(request)
      const states = [...requests.values()]
      const first = ORDER.map((name) => states.find((each) => each.state === name)).find(Boolean)
      status.set(first ?? { state: 'idle' })
    },
  }
}

const listeners = new Set<() => void>()

/**
 * Calls the listener when a lost connection is worth another attempt: the network is back, the person returns to the page, or
 * `retryConnections` is called. Returns a function that unsubscribes.
 */
export function onNetworkBack(listener: () => void): () => void {
  const { window, document } = globalThis as { window?: Window; document?: Document }
  const onVisible = (): void => {
    if (document?.visibilityState === 'visible') listener()
  }
  // A listener that is added twice is called twice.
  const own = (): void => listener()
  listeners.add(own)
  window?.addEventListener('online', listener)
  window?.addEventListener('focus', listener)
  document?.addEventListener('visibilitychange', onVisible)
  return () => {
    listeners.delete(own)
    window?.removeEventListener('online', listener)
    window?.removeEventListener('focus', listener)
    document?.removeEventListener('visibilitychange', onVisible)
  }
}

/** Opens lost connections again without waiting for their next attempt. */
export function retryConnections(): void {
  // A copy: an attempt that fails at once subscribes again.
  for (const listener of Array.from(listeners)) listener()
}

/** Resolves after `ms`, as soon as the signal is aborted, or when another attempt is worthwhile. */
export async function waitForNextAttempt(ms: number, signal: AbortSignal): Promise<void> {
  const back = new AbortController()
  const unsubscribe = onNetworkBack(() => back.abort())
  await sleep(ms, AbortSignal.any([signal, back.signal]))
  unsubscribe()
}

/** Whether the browser says that it is offline. Node has no `navigator`, or one without `onLine`. */
export function isBrowserOffline(): boolean {
  const { navigator } = globalThis as { navigator?: { readonly onLine?: boolean } }
  return navigator?.onLine === false
}

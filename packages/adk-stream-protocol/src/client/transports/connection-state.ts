import { Listeners } from '../../shared/collections.ts'

/**
 * `idle`: nothing needs a connection. `connecting`: the first one is being opened. `open`. `lost`: the connection was lost and is opened
 * again at `retryAt` (ms since 1970), or is being opened now. `closed`: given up until the next request.
 */
export interface ConnectionState {
  readonly state: 'idle' | 'connecting' | 'open' | 'lost' | 'closed'
  readonly retryAt?: number
  /** The number of the attempt to reconnect, from 1. */
  readonly attempt?: number
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
      const { state, retryAt, attempt } = current
      if (next.state === state && next.retryAt === retryAt && next.attempt === attempt) return
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

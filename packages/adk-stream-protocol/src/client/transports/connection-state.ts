import { Listeners } from '../../shared/listeners.ts'

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
export class ConnectionStatus {
  readonly #listeners = new Listeners<[ConnectionState]>()
  #current: ConnectionState = { state: 'idle' }

  get current(): ConnectionState {
    return this.#current
  }

  set(next: ConnectionState): void {
    const { state, retryAt, attempt } = this.#current
    if (next.state === state && next.retryAt === retryAt && next.attempt === attempt) return
    this.#current = next
    this.#listeners.call(next)
  }

  /** Returns a function that unsubscribes. */
  subscribe(listener: ConnectionListener): () => void {
    return this.#listeners.add(listener)
  }
}

/** The states in the order in which they are shown. */
const ORDER = ['lost', 'open', 'connecting', 'idle', 'closed'] as const

/** Combines the states of several requests into one: `lost` if any is lost, otherwise the best one. */
export class SharedConnection {
  readonly status = new ConnectionStatus()
  readonly #requests = new Map<object, ConnectionState>()

  /** Reports the state of a request. `undefined`: the request has ended. */
  report(request: object, state: ConnectionState | undefined): void {
    if (state) this.#requests.set(request, state)
    else this.#requests.delete(request)
    const states = [...this.#requests.values()]
    const first = ORDER.map((name) => states.find((each) => each.state === name)).find(Boolean)
    this.status.set(first ?? { state: 'idle' })
  }
}

/**
 * `idle`: nothing needs a connection. `connecting`: the first is being opened. `open`. `lost`: it broke, and is opened again, next at
 * `retryAt` (ms since 1970), or right now. `closed`: given up, until somebody asks for something.
 */
export interface ConnectionState {
  readonly state: 'idle' | 'connecting' | 'open' | 'lost' | 'closed'
  readonly retryAt?: number
  /** Which attempt to get it back this is, from 1. */
  readonly attempt?: number
}

/** Hears when a connection comes, goes, or is tried again. */
export type ConnectionListener = (connection: ConnectionState) => void

/** A transport whose connection can be shown. */
export interface Connected {
  /** The same object until it changes. */
  readonly connection: ConnectionState
  onConnection(listener: ConnectionListener): () => void
}

/** The state of a connection, and who wants to know of it. */
export class ConnectionStatus {
  readonly #listeners = new Set<ConnectionListener>()
  #current: ConnectionState = { state: 'idle' }

  get current(): ConnectionState {
    return this.#current
  }

  set(next: ConnectionState): void {
    const { state, retryAt, attempt } = this.#current
    if (next.state === state && next.retryAt === retryAt && next.attempt === attempt) return
    this.#current = next
    for (const listener of this.#listeners) listener(next)
  }

  subscribe(listener: ConnectionListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

/** What shows first when several things go on at once. */
const ORDER = ['lost', 'open', 'connecting', 'idle', 'closed'] as const

/** One state for many requests: the worst of what is lost, else the best of what is there. */
export class SharedConnection {
  readonly status = new ConnectionStatus()
  readonly #strands = new Map<object, ConnectionState>()

  /** Tells how a request fares; nothing when it is over. */
  report(strand: object, state: ConnectionState | undefined): void {
    if (state) this.#strands.set(strand, state)
    else this.#strands.delete(strand)
    const states = [...this.#strands.values()]
    const first = ORDER.map((name) => states.find((each) => each.state === name)).find(Boolean)
    this.status.set(first ?? { state: 'idle' })
  }
}

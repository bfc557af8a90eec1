/** The reason why a store operation failed. */
export type StoreErrorCode =
  /** The database cannot be reached at the moment. */
  | 'unavailable'
  /** Another process had locked the database for longer than the busy timeout. */
  | 'busy'
  /** The user, the password, the database or its rights are wrong. */
  | 'misconfigured'
  /** The database accepts no writes: it is a replica, for example. */
  | 'read-only'
  /** The disk of the database is full. */
  | 'full'
  | 'corrupt'
  | 'newer-schema'
  /** The tables are missing or outdated, and the store may not or cannot migrate them. */
  | 'older-schema'
  /** Entries of the audit record were changed or removed. */
  | 'tampered'
  | 'closed'
  | 'session-gone'
  | 'conflict'
  /** Another process has taken over the chat that this process was writing to. */
  | 'lock-lost'
  | 'invalid'

/** An error of a store. `cause` is the error of the database, if there is one. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }

  /** Whether the same call may succeed in a moment. Other errors last until someone acts. */
  get isTransient(): boolean {
    return this.code === 'busy' || this.code === 'unavailable'
  }

  /** Whether the store cannot be used until an operator acts: wrong rights, a full disk or another schema, for example. */
  get isLasting(): boolean {
    return LASTING.has(this.code)
  }
}

const LASTING: ReadonlySet<StoreErrorCode> = new Set([
  'misconfigured',
  'read-only',
  'full',
  'corrupt',
  'newer-schema',
  'older-schema',
  'tampered',
  'closed',
])

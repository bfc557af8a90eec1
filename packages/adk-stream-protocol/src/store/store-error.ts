/** The reason why a store operation failed. */
export type StoreErrorCode =
  | 'unavailable'
  /** Another process had locked the database for longer than the busy timeout. */
  | 'busy'
  | 'corrupt'
  | 'newer-schema'
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
}

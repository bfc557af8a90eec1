/** Why a store refused. */
export type StoreErrorCode =
  | 'unavailable'
  /** Another process held the database for longer than the busy timeout. */
  | 'busy'
  | 'corrupt'
  | 'newer-schema'
  /** Entries of the audit record were changed or removed. */
  | 'tampered'
  | 'closed'
  | 'session-gone'
  | 'conflict'
  /** Another process has taken over the chat that this process was writing in. */
  | 'lock-lost'
  | 'invalid'

/** What a store refuses or cannot do; `code` is closed, `cause` holds the database's own error. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** What the store uses of a pool of `pg`. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>
  /** The options of the pool. The store opens a few connections of its own with them. */
  readonly options?: object
  /** The numbers of open, idle and awaited connections, for metrics. */
  readonly totalCount?: number
  readonly idleCount?: number
  readonly waitingCount?: number
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect', listener: (client: PostgresClient) => void): unknown
}

/** What the store uses of a connection of `pg`. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<{ readonly rows: unknown[] }>
  /** With `true` or an error, the connection is closed instead of used again. */
  release(error?: Error | boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

/** A query with its parameters, as `pg` takes it. */
export interface PostgresQuery {
  readonly text: string
  readonly values?: unknown[]
  readonly name?: string
  readonly types?: { getTypeParser(oid: number, format?: string): (value: never) => unknown }
}

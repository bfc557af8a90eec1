import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

import { StoreError } from '../store-error.ts'
import { classify, isPreparedLost } from './postgres-errors.ts'

/** Runs one statement. The caller guarantees that `Row` matches the selected columns. */
export type RunStatement = <Row = never>(
  text: string,
  values?: readonly unknown[],
) => Promise<Row[]>

interface DatabaseOptions {
  /** How long work is tried again after a lost connection or a conflict, in ms. */
  readonly busyTimeoutMs: number
  /** Whether statements are prepared once per connection. `auto`: until a proxy turns out not to support it. */
  readonly prepare: boolean | 'auto'
  /** How long a transaction may wait for its process, in ms. Default 10,000. */
  readonly maxIdleMs?: number
}

/**
 * A pool with statements, transactions, retries and errors as `StoreError`.
 *
 * Work is run again if its connection was lost, although it may have been committed. It must therefore be idempotent:
 * If `attempt` is not 0, an earlier attempt may have taken effect.
 */
export class Database {
  readonly #pool: PostgresPool
  readonly #options: DatabaseOptions
  /** A process that stands still in a transaction would block others with its row locks. PostgreSQL ends the transaction instead. */
  readonly #limitIdle: string
  #prepares: boolean
  #isClosed = false
  /** How long work has waited for connections, in ms. */
  waitedMs = 0

  constructor(pool: PostgresPool, options: DatabaseOptions) {
    this.#pool = pool
    this.#options = options
    this.#prepares = options.prepare !== false
    const { maxIdleMs = MAX_IDLE_MS } = options
    this.#limitIdle = `SET LOCAL idle_in_transaction_session_timeout = ${maxIdleMs}`
    ignoreErrors(pool)
  }

  /** Runs a single statement. It may run again after a lost connection. */
  query<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.retry((run) => run<Row>(text, values))
  }

  /** Runs statements outside a transaction, on one connection, until they succeed. */
  retry<Result>(work: (run: RunStatement, attempt: number) => Promise<Result>): Promise<Result> {
    return this.#repeat((attempt) => this.#use((client) => work(this.#runOn(client), attempt)))
  }

  /** Runs statements in one transaction, which is repeated until it is committed. `begin` starts it. */
  transaction<Result>(
    work: (run: RunStatement, attempt: number) => Promise<Result>,
    begin = 'BEGIN',
  ): Promise<Result> {
    return this.#repeat((attempt) =>
      this.#use(async (client) => {
        await client.query({ text: `${begin}; ${this.#limitIdle}` })
        const run = this.#runOn(client)
        try {
          const result = await work(run, attempt)
          await client.query({ text: 'COMMIT' })
          return result
        } catch (error) {
          // A lost connection has rolled back. Then this fails too, and the first error counts.
          await client.query({ text: 'ROLLBACK' }).catch(ignore)
          throw error
        }
      }),
    )
  }

  /** Rejects later calls. Returns at once; the pool is closed by its owner. */
  close(): void {
    this.#isClosed = true
  }

  async #repeat<Result>(work: (attempt: number) => Promise<Result>): Promise<Result> {
    const deadline = performance.now() + this.#options.busyTimeoutMs
    for (let attempt = 0; ; attempt += 1) {
      if (this.#isClosed) throw new StoreError('closed', 'The store is closed. Open a new one.')
      const pause = pauseMs(attempt)
      const prepares = this.#prepares
      try {
        return await work(attempt)
      } catch (cause) {
        if (prepares && this.#stopsPreparing(cause)) continue
        const { error, isWorthRetrying } = classify(cause)
        if (!isWorthRetrying || performance.now() + pause > deadline) throw error
      }
      await delay(pause)
    }
  }

  /**
   * Whether a statement has not run because its prepared form was lost: a proxy gave the connection to another client, as PgBouncer
   * before 1.21 does in transaction mode. From now on, statements are not prepared.
   */
  #stopsPreparing(cause: unknown): boolean {
    if (this.#options.prepare !== 'auto' || !isPreparedLost(cause)) return false
    this.#prepares = false
    return true
  }

  async #use<Result>(work: (client: PostgresClient) => Promise<Result>): Promise<Result> {
    const from = performance.now()
    const client = await this.#pool.connect().finally(() => {
      this.waitedMs += performance.now() - from
    })
    // A connection that the host's pool had opened before the store has no listener yet.
    client.on('error', ignore)
    let isBroken = false
    try {
      return await work(client)
    } catch (error) {
      isBroken = classify(error).isConnectionLost
      throw error
    } finally {
      client.removeListener('error', ignore)
      client.release(isBroken)
    }
  }

  #runOn(client: PostgresClient): RunStatement {
    return async <Row>(text: string, values: readonly unknown[] = []) => {
      const query: PostgresQuery = {
        text,
        values: [...values],
        types: TYPES,
        ...(this.#prepares && values.length > 0 && { name: nameOf(text) }),
      }
      return (await client.query(query)).rows as Row[]
    }
  }
}

const pools = new WeakSet<PostgresPool>()

/**
 * Handles the errors of connections. Without a listener they would end the process; the query of a lost connection is rejected
 * anyway. The listeners stay after the store is closed, because a connection can be lost while its pool is being closed.
 */
function ignoreErrors(pool: PostgresPool): void {
  if (pools.has(pool)) return
  pools.add(pool)
  pool.on('error', ignore)
  // A server that shuts down may end a new connection before `connect()` returns it.
  pool.on('connect', (client) => client.on('error', ignore))
}

/** The host may have changed how `pg` reads values, so the store brings its own functions. */
const TYPES = {
  getTypeParser: (oid: number): ((value: never) => unknown) => PARSERS.get(oid) ?? readText,
}

/** How to read the text of a value, by the id of its type. */
const PARSERS: ReadonlyMap<number, (value: string) => unknown> = new Map<
  number,
  (value: string) => unknown
>([
  // bool
  [16, (value) => value === 't'],
  // bytea
  [17, (value) => Buffer.from(value.slice(2), 'hex')],
  // int8, int4, float8
  [20, Number],
  [23, Number],
  [701, Number],
])

function readText(value: string): string {
  return value
}

const names = new Map<string, string>()

/** Returns the name under which a statement is prepared. */
function nameOf(text: string): string {
  const known =
    names.get(text) ?? `adk_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`
  names.set(text, known)
  return known
}

const MAX_IDLE_MS = 10_000
const MAX_PAUSE_MS = 500

/** Returns the delay before the next attempt. It grows with each attempt, with jitter between processes. */
function pauseMs(attempt: number): number {
  return Math.min(MAX_PAUSE_MS, 5 * 2 ** attempt) * (0.5 + Math.random())
}

function ignore(): void {}

/** The part of a `pg` client that LISTEN needs. */
export interface ListenClient {
  connect(): Promise<unknown>
  query(sql: string): Promise<unknown>
  end(): Promise<void>
  on(event: 'notification', listener: (message: { payload?: string | undefined }) => void): unknown
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown
}

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
interface PostgresQuery {
  readonly text: string
  readonly values?: unknown[]
  readonly name?: string
  readonly types?: { getTypeParser(oid: number, format?: string): (value: never) => unknown }
}

/** SQL expressions for the current time, in ms. All instances share the clock of the database. */
export interface Clocks {
  /** For deadlines. */
  readonly clock: string
  /** For leases. Time in which the database could not be written to does not count, see `tickSql`. */
  readonly leaseClock: string
  /** The lease clock for people, who also want to know the time that does not count. Default: `leaseClock`. */
  readonly uncappedLeaseClock?: string
}

/** The time of the database, in ms since 1970. */
const WALL_CLOCK = '(extract(epoch FROM clock_timestamp()) * 1000)::double precision'

/** Returns the clocks of a database. `schema` is a quoted name. */
export function databaseClocks(schema: string): Clocks {
  return {
    clock: 'floor(extract(epoch FROM clock_timestamp()) * 1000)::double precision',
    leaseClock: `${schema}.lease_now()`,
    uncappedLeaseClock: `(SELECT at + greatest(0, ${WALL_CLOCK} - ticked_at) FROM ${schema}.lease_clock)`,
  }
}

/**
 * Returns the statement that advances the lease clock. `maxGap` is the most that it advances by: if no server has done so for
 * longer, the database was away, and no server could renew its lease.
 */
export function tickSql(schema: string, maxGap: string): string {
  // PostgreSQL evaluates this again after it has waited for another server that does the same.
  return `
    UPDATE ${schema}.lease_clock SET at = at + greatest(0, least(${WALL_CLOCK} - ticked_at, ${maxGap})), ticked_at = ${WALL_CLOCK},
      max_gap = CASE WHEN ${maxGap} > 0 THEN ${maxGap} ELSE max_gap END`
}

/**
 * The part of a statement that makes its commit not wait for the disk, for what need not survive a power failure. Another part of the
 * statement must select from `quick`, because PostgreSQL leaves out what is not used.
 */
export const QUICK = `quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`

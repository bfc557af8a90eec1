import { Client, Pool } from 'pg'
import { LockedChats } from '../keys.ts'
import type { SessionCacheLimits } from '../session-history.ts'
import { SessionCache } from '../session-history.ts'
import type { Store } from '../store.ts'
import { StoreError } from '../store-error.ts'
import { openPostgresFeatures } from '../features.ts'
import type { Clocks, PostgresPool } from './database.ts'
import { databaseClocks, Database } from './database.ts'
import { migrate } from './migrations.ts'
import { PostgresApprovalStore } from './postgres-approval-store.ts'
import { postgresRetention } from './postgres-retention-store.ts'
import { PostgresSessionService } from './postgres-session-service.ts'
import { openChats, openSecrets } from '../table-stores.ts'
import { toDatabase } from './feature-tables.ts'

interface SharedPostgresOptions {
  /** The schema with the tables of the store. It is created if it is missing. Default `adk_stream_protocol`. */
  readonly schema?: string
  /**
   * Whether to create and migrate the tables. Default true. With false, an outdated schema is rejected with `older-schema`,
   * for deployments whose instances may not create tables.
   */
  readonly migrate?: boolean
  /**
   * How many connections are reserved for decisions, leases, locks and signals, so that they never wait behind turns. Default 3.
   * Up to two more read sessions while all other connections are in use.
   */
  readonly reservedConnections?: number
  /**
   * Whether each connection prepares a statement once, which is faster. Default: yes, until PostgreSQL reports that a prepared
   * statement is missing, as behind a PgBouncer in transaction mode that does not support them. Then no more, until the store is opened again.
   */
  readonly prepareStatements?: boolean
  /** How much parsed history to keep in memory. */
  readonly cache?: SessionCacheLimits
  /**
   * How long work is repeated after a lost connection, a restart of PostgreSQL or a conflict, and how long it waits for a
   * free connection, in ms. Default 5,000. Then it fails with `unavailable` or `busy`, and the bridge responds with
   * status 503.
   */
  readonly busyTimeoutMs?: number
}

/** Options of {@link openPostgresStore}: a pool of the application, or a connection string. */
export type PostgresStoreOptions = SharedPostgresOptions &
  (
    | {
        /** A `Pool` of the package `pg`. Closing the store leaves it open. */
        readonly pool: PostgresPool
      }
    | {
        /** For example the variable `DATABASE_URL`. */
        readonly connectionString: string
        /** How many connections to use in addition to the reserved ones. Default 10. */
        readonly maxConnections?: number
      }
  )

/**
 * Opens a store in a PostgreSQL database and migrates its schema. Any number of processes on any number of machines may
 * open the same database. Needs the package `pg`. Throws a {@link StoreError} if the database cannot be used.
 */
export function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  return openWithClocks(options)
}

/** For tests that set the clock. */
export async function openWithClocks(options: PostgresStoreOptions, given?: Clocks) {
  const { schema: name = 'adk_stream_protocol', busyTimeoutMs = 5_000, prepareStatements } = options
  const schema = `"${checkSchema(name)}"`
  const clocks = given ?? databaseClocks(schema)
  const pools = openPools(options, busyTimeoutMs)
  const settings = { busyTimeoutMs, prepare: prepareStatements ?? ('auto' as const) }
  const databases = {
    turns: new Database(pools.turns, settings),
    decisions: new Database(pools.decisions, settings),
    spare: new Database(pools.spare, settings),
  }
  const cache = new SessionCache<string>(options.cache)
  const store = createStore(pools, { ...databases, schema, clocks, cache })
  try {
    await migrate(databases.decisions, { schema, allowed: options.migrate ?? true })
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

interface StoreParts {
  readonly turns: Database
  readonly decisions: Database
  readonly spare: Database
  /** The quoted name of the schema. */
  readonly schema: string
  readonly clocks: Clocks
  readonly cache: SessionCache<string>
}

function createStore(pools: Pools, parts: StoreParts) {
  const { turns, decisions, spare, schema, clocks, cache } = parts
  const databases = [turns, decisions, spare]
  const held = new LockedChats()
  // Writes of turns may wait for each other. A decision reads the session, and must not wait for them.
  const reads = () => (isUsedUp(pools.turns) ? spare : turns)
  const sessions = new PostgresSessionService(turns, { schema, cache, held, reads })
  const { createClient } = pools
  const tables = toDatabase({ turns, schema, clocks })
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    for (const database of databases) database.close()
    cache.clear()
    closing ??= pools.close()
    return closing
  }
  return {
    sessions,
    approvals: new PostgresApprovalStore({
      schema,
      clocks,
      held,
      sessions,
      decisions,
      reads: turns,
    }),
    chats: openChats(tables),
    retention: postgresRetention(turns, schema, clocks),
    ...openPostgresFeatures({ turns, decisions, createClient, schema, clocks }),
    secret: openSecrets(tables),
    poolStats: () => ({
      ...countConnections(pools),
      waitedMs: databases.reduce((sum, database) => sum + database.waitedMs, 0),
    }),
    close,
    [Symbol.asyncDispose]: close,
  } satisfies Store
}

interface Pools {
  readonly turns: PostgresPool
  readonly decisions: PostgresPool
  /** For reads while all connections of `turns` are in use. Its connections are opened when they are needed. */
  readonly spare: PostgresPool
  /** Creates a connection that is not one of the pools. Undefined if its options are not known. */
  readonly createClient: (() => Client) | undefined
  /** Ends the pools that the store has opened. */
  readonly close: () => Promise<void>
}

function openPools(options: PostgresStoreOptions, busyTimeoutMs: number): Pools {
  const { reservedConnections: reserved = 3 } = options
  // Idle connections do not keep the process alive.
  const own = { connectionTimeoutMillis: busyTimeoutMs, keepAlive: true, allowExitOnIdle: true }
  if ('pool' in options) {
    const { pool } = options
    // Without its options, nothing can be reserved.
    const { options: known } = pool
    if (known === undefined)
      return {
        turns: pool,
        decisions: pool,
        spare: pool,
        createClient: undefined,
        close: async () => {},
      }
    const openOwn = (max: number) => new Pool({ ...known, ...own, min: 0, max })
    const [decisions, spare] = [openOwn(reserved), openOwn(SPARE_CONNECTIONS)]
    const createClient = (): Client => new Client({ ...known, ...own })
    const close = async (): Promise<void> => {
      await Promise.all([decisions.end(), spare.end()])
    }
    return { turns: pool, decisions, spare, createClient, close }
  }
  const { connectionString, maxConnections: max = 10 } = options
  if (typeof connectionString !== 'string' || connectionString === '') {
    throw new StoreError(
      'invalid',
      'openPostgresStore needs `connectionString`, such as postgres://user:password@host/database, or `pool`.',
    )
  }
  const open = (size: number) => {
    try {
      return new Pool({ connectionString, ...own, max: size })
    } catch (cause) {
      throw new StoreError('invalid', '`connectionString` is not a URL of PostgreSQL.', { cause })
    }
  }
  const [turns, decisions, spare] = [open(max), open(reserved), open(SPARE_CONNECTIONS)]
  return {
    turns,
    decisions,
    spare,
    createClient: () => new Client({ connectionString, ...own }),
    close: async () => {
      await Promise.all([turns, decisions, spare].map((pool) => pool.end()))
    },
  }
}

const SPARE_CONNECTIONS = 2

/** Whether the next query would wait for a connection. */
function isUsedUp({ waitingCount = 0, idleCount = 0, totalCount = 0, options }: PostgresPool) {
  const { max = Infinity }: { max?: number } = options ?? {}
  return waitingCount > 0 || (idleCount === 0 && totalCount >= max)
}

function countConnections({ turns, decisions, spare }: Pools) {
  const counts = { used: 0, idle: 0, waiting: 0 }
  // The three may be one pool of the application.
  for (const pool of new Set([turns, decisions, spare])) {
    const { totalCount = 0, idleCount = 0, waitingCount = 0 } = pool
    counts.used += totalCount - idleCount
    counts.idle += idleCount
    counts.waiting += waitingCount
  }
  return counts
}

function checkSchema(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)) return name
  throw new StoreError(
    'invalid',
    '`schema` must have 1 to 63 letters, digits and underscores, and not begin with a digit.',
  )
}

import { openSqliteFeatures, SQLITE_FEATURES } from '../features.ts'
import type { SessionCacheLimits } from '../session-history.ts'
import { SessionCache } from '../session-history.ts'
import type { Store } from '../store.ts'
import type { Connection } from './connection.ts'
import { LockedChats } from '../keys.ts'
import { DATABASE_CLOCK } from './approval-sql.ts'
import { endEarlierLeases, type LeaseClock, sharedLeaseClock } from './leases.ts'
import { openDatabase } from './open-database.ts'
import { SqliteApprovalStore } from './sqlite-approval-store.ts'
import { sqliteRetention } from './sqlite-retention-store.ts'
import { SqliteSessionService } from './sqlite-session-service.ts'
import { openChats, openSecrets } from '../table-stores.ts'
import { toDatabase } from './feature-tables.ts'

/**
 * Options of {@link openSqliteStore}.
 *
 * @inline
 */
interface SqliteStoreOptions {
  /** The database file, or `:memory:` for a store within this process. A missing file is created, with its folder. */
  readonly path: string
  /** How much parsed history to keep in memory. */
  readonly cache?: SessionCacheLimits
  /**
   * How long a read or write waits while another process has locked the database, in ms. Default 5,000. Then it fails
   * with the code `busy`, and the bridge responds with status 503. Other work of the process continues meanwhile.
   */
  readonly busyTimeoutMs?: number
}

/**
 * Opens a store in a SQLite file and migrates the file to the newest schema. Several processes may open the same
 * file. Throws a {@link StoreError} if the file cannot be used.
 */
export function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  return openWithClocks(options, { clock: DATABASE_CLOCK })
}

/** For tests that set the clocks. `clock` is an SQL expression. Default of `leaseClock`: the clock that all processes share. */
export async function openWithClocks(
  options: SqliteStoreOptions,
  { clock, ...given }: { readonly clock: string; readonly leaseClock?: LeaseClock },
): Promise<Store> {
  const connection = await openDatabase(options.path, options.busyTimeoutMs)
  const leaseClock = given.leaseClock ?? sharedLeaseClock(connection)
  try {
    await endEarlierLeases(connection, leaseClock, SQLITE_FEATURES)
    return createStore(connection, options, { clock, leaseClock })
  } catch (error) {
    connection.close()
    throw error
  }
}

function createStore(
  connection: Connection,
  { path, cache: limits }: SqliteStoreOptions,
  { clock, leaseClock }: { readonly clock: string; readonly leaseClock: LeaseClock },
): Store {
  const held = new LockedChats()
  const cache = new SessionCache(limits)
  const sessions = new SqliteSessionService(connection, cache, held)
  const approvals = new SqliteApprovalStore(connection, {
    held,
    sessions,
    clock,
    leaseClock,
    ...(path !== ':memory:' && { path }),
  })
  const database = toDatabase(connection, clock)
  const close = async (): Promise<void> => {
    await approvals.close()
    await connection.endBackground()
    connection.close()
    cache.clear()
  }
  return {
    sessions,
    approvals,
    chats: openChats(database, () => connection.emptyLog()),
    retention: sqliteRetention(connection, clock, leaseClock),
    ...openSqliteFeatures(connection, { clock, leaseClock }),
    secret: openSecrets(database),
    close,
    [Symbol.asyncDispose]: close,
  }
}

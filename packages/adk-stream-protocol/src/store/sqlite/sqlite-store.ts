import { randomBytes } from 'node:crypto'
import type { SessionCacheLimits } from '../session-history.ts'
import { SessionCache } from '../session-history.ts'
import { checkName } from '../session-key.ts'
import type { Store } from '../store.ts'
import { StoreError } from '../store-error.ts'
import type { Connection, Statement } from './connection.ts'
import { LockedChats } from '../locked-chats.ts'
import { DATABASE_CLOCK } from './approval-sql.ts'
import { endEarlierLeases, type LeaseClock, monotonicClock } from './lease-clock.ts'
import { openDatabase } from './open-database.ts'
import { SqliteApprovalStore } from './sqlite-approval-store.ts'
import {
  SqliteChatStore,
  SqliteLiveSessionStore,
  SqliteBrowserCallStore,
} from './sqlite-chat-stores.ts'
import { SqliteCredentialStore } from './sqlite-credential-store.ts'
import { SqliteRetentionStore } from './sqlite-retention-store.ts'
import { SqliteSessionService } from './sqlite-session-service.ts'
import { SqliteSignals } from './sqlite-signals.ts'

/** Options of {@link openSqliteStore}. */
export interface SqliteStoreOptions {
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
  return openWithClocks(options, { clock: DATABASE_CLOCK, leaseClock: monotonicClock })
}

/** For tests that set the clocks. `clock` is an SQL expression. */
export async function openWithClocks(
  { path, cache, busyTimeoutMs }: SqliteStoreOptions,
  clocks: Clocks,
): Promise<Store> {
  const connection = await openDatabase(path, busyTimeoutMs)
  try {
    await endEarlierLeases(connection, clocks.leaseClock)
    return new SqliteStore(connection, { path, cache: new SessionCache(cache), clocks })
  } catch (error) {
    connection.close()
    throw error
  }
}

interface Clocks {
  readonly clock: string
  readonly leaseClock: LeaseClock
}

interface SqliteStoreParts {
  readonly path: string
  readonly cache: SessionCache
  readonly clocks: Clocks
}

class SqliteStore implements Store {
  readonly sessions: SqliteSessionService
  readonly approvals: SqliteApprovalStore
  readonly browserCalls: SqliteBrowserCallStore
  readonly chats: SqliteChatStore
  readonly retention: SqliteRetentionStore
  readonly liveSessions: SqliteLiveSessionStore
  readonly signals: SqliteSignals
  readonly credentials: SqliteCredentialStore
  readonly #connection: Connection
  readonly #cache: SessionCache
  readonly #createSecret: Statement<never>
  readonly #readSecret: Statement<{ value: ArrayBuffer }>

  constructor(connection: Connection, { path, cache, clocks }: SqliteStoreParts) {
    const held = new LockedChats()
    this.#connection = connection
    this.#cache = cache
    this.sessions = new SqliteSessionService(connection, cache, held)
    const file = path === ':memory:' ? {} : { path }
    const { sessions } = this
    this.approvals = new SqliteApprovalStore(connection, { held, sessions, ...clocks, ...file })
    this.browserCalls = new SqliteBrowserCallStore(connection, clocks.clock, clocks.leaseClock)
    this.chats = new SqliteChatStore(connection)
    this.retention = new SqliteRetentionStore(connection, clocks.clock, clocks.leaseClock)
    this.liveSessions = new SqliteLiveSessionStore(connection, clocks.clock)
    this.signals = new SqliteSignals(connection, clocks.clock)
    this.credentials = new SqliteCredentialStore(connection, clocks.clock)
    this.#createSecret = connection.prepare(
      'INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING',
    )
    this.#readSecret = connection.prepare('SELECT value FROM secrets WHERE name = ?')
  }

  async secret(name: string): Promise<Buffer> {
    checkName('name', name)
    const [known] = await this.#readSecret.select(name)
    if (known !== undefined) return Buffer.from(known.value)
    // Another process may create the secret first. The stored one counts.
    await this.#connection.write(() => this.#createSecret.run(name, randomBytes(32)))
    const [created] = await this.#readSecret.select(name)
    if (created === undefined)
      throw new StoreError(
        'unavailable',
        `The secret ${name} was removed while it was being created. Try again.`,
      )
    return Buffer.from(created.value)
  }

  async close(): Promise<void> {
    await this.approvals.close()
    await this.#connection.endBackground()
    this.#connection.close()
    this.#cache.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

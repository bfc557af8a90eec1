import type {
  CredentialStore,
  NewAttempt,
  NewCredential,
  RefreshLock,
  StoredCredential,
  TakenAttempt,
  Owner,
} from '../store.ts'
import { checkName, ownerColumns } from '../session-key.ts'
import { DATABASE_CLOCK } from './approval-sql.ts'
import type { Connection } from './connection.ts'

/** Stores encrypted credentials in SQLite. */
export class SqliteCredentialStore implements CredentialStore {
  readonly #connection: Connection
  readonly #statements: ReturnType<typeof prepareStatements>

  /** `clock` is an SQL expression, in ms. */
  constructor(connection: Connection, clock: string = DATABASE_CLOCK) {
    this.#connection = connection
    this.#statements = prepareStatements(connection, clock)
  }

  async list(owner: Owner): Promise<StoredCredential[]> {
    const rows = await this.#statements.list.select(...ownerColumns(owner))
    return rows.map(({ name, sealed, version, used_at: usedAt }) => ({
      name,
      sealed: Buffer.from(sealed),
      version,
      usedAt,
    }))
  }

  async save(owner: Owner, { name, sealed, version }: NewCredential): Promise<boolean> {
    const row = [...ownerColumns(owner), checkName('name', name), Buffer.from(sealed)]
    const { put, replace } = this.#statements
    return this.#connection.write(
      () => (version === undefined ? put.rows(...row) : replace.rows(...row, version)).length > 0,
    )
  }

  async remove(owner: Owner, name: string): Promise<boolean> {
    const key = [...ownerColumns(owner), checkName('name', name)]
    return this.#connection.write(() => this.#statements.remove.rows(...key).length > 0)
  }

  async lockRefresh(owner: Owner, { name, version, leaseMs }: RefreshLock): Promise<boolean> {
    const values = [...ownerColumns(owner), checkName('name', name), version, leaseMs]
    return this.#connection.write(() => this.#statements.lock.rows(...values).length > 0)
  }

  async touch(owner: Owner, name: string): Promise<void> {
    const key = [...ownerColumns(owner), checkName('name', name)]
    await this.#connection.write(() => this.#statements.touch.run(...key), 'process-death')
  }

  async addAttempt(owner: Owner, { id, sealed, maxAgeMs }: NewAttempt): Promise<void> {
    const row = [...ownerColumns(owner), checkName('id', id), Buffer.from(sealed), maxAgeMs]
    await this.#connection.write(() => this.#statements.addAttempt.run(...row))
  }

  async takeAttempt(appName: string, id: string): Promise<TakenAttempt | undefined> {
    const key = [checkName('appName', appName), checkName('id', id)]
    const [row] = await this.#connection.write(() => this.#statements.takeAttempt.rows(...key))
    if (row?.is_valid !== 1) return undefined
    return { principalId: row.principal_id, sealed: Buffer.from(row.sealed) }
  }

  async removeOld(unusedMs: number): Promise<void> {
    const { isOld, removeAttempts, removeUnused } = this.#statements
    // Usually nothing is old, and this query takes no lock.
    if ((await isOld.select(unusedMs)).length === 0) return
    await this.#connection.write(() => {
      removeAttempts.run()
      removeUnused.run(unusedMs)
    })
  }
}

interface CredentialRow {
  readonly name: string
  readonly sealed: ArrayBuffer
  readonly version: number
  readonly used_at: number
}

interface AttemptRow {
  readonly principal_id: string
  readonly sealed: ArrayBuffer
  readonly is_valid: number
}

interface Changed {
  readonly changed: number
}

function prepareStatements(connection: Connection, clock: string) {
  const key = 'app_name = ?1 AND principal_id = ?2 AND name = ?3'
  return {
    list: connection.prepare<CredentialRow>(`
      SELECT name, sealed, version, used_at FROM credentials
      WHERE app_name = ?1 AND principal_id = ?2 ORDER BY name`),
    put: connection.prepare<Changed>(`
      INSERT INTO credentials (app_name, principal_id, name, sealed, version, used_at, refresh_until)
      VALUES (?1, ?2, ?3, ?4, 1, ${clock}, 0)
      ON CONFLICT DO UPDATE SET sealed = excluded.sealed, version = version + 1, used_at = excluded.used_at,
        refresh_until = 0
      RETURNING 1 AS changed`),
    replace: connection.prepare<Changed>(`
      UPDATE credentials SET sealed = ?4, version = version + 1, used_at = ${clock}, refresh_until = 0
      WHERE ${key} AND version = ?5 RETURNING 1 AS changed`),
    remove: connection.prepare<Changed>(
      `DELETE FROM credentials WHERE ${key} RETURNING 1 AS changed`,
    ),
    lock: connection.prepare<Changed>(`
      UPDATE credentials SET refresh_until = ${clock} + ?5
      WHERE ${key} AND version = ?4 AND refresh_until <= ${clock} RETURNING 1 AS changed`),
    touch: connection.prepare(`UPDATE credentials SET used_at = ${clock} WHERE ${key}`),
    addAttempt: connection.prepare(`
      INSERT INTO sign_in_attempts (app_name, principal_id, id, sealed, expires_at)
      VALUES (?1, ?2, ?3, ?4, ${clock} + ?5)`),
    takeAttempt: connection.prepare<AttemptRow>(`
      DELETE FROM sign_in_attempts WHERE app_name = ?1 AND id = ?2
      RETURNING principal_id, sealed, expires_at > ${clock} AS is_valid`),
    isOld: connection.prepare<{ old: number }>(`
      SELECT 1 AS old WHERE EXISTS (SELECT 1 FROM sign_in_attempts WHERE expires_at <= ${clock})
      OR EXISTS (SELECT 1 FROM credentials WHERE used_at <= ${clock} - ?1)`),
    removeAttempts: connection.prepare(`DELETE FROM sign_in_attempts WHERE expires_at <= ${clock}`),
    removeUnused: connection.prepare(`DELETE FROM credentials WHERE used_at <= ${clock} - ?1`),
  }
}

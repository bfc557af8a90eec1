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
import type { Clocks, Database } from './database.ts'

/** Stores encrypted credentials in PostgreSQL. */
export class PostgresCredentialStore implements CredentialStore {
  readonly #database: Database
  readonly #sql: ReturnType<typeof credentialSql>

  constructor(database: Database, schema: string, clocks: Clocks) {
    this.#database = database
    this.#sql = credentialSql(schema, clocks)
  }

  async list(owner: Owner): Promise<StoredCredential[]> {
    const rows = await this.#database.query<CredentialRow>(this.#sql.list, ownerColumns(owner))
    return rows.map(({ name, sealed, version, used_at: usedAt }) => ({
      name,
      sealed,
      version,
      usedAt,
    }))
  }

  async save(owner: Owner, { name, sealed, version }: NewCredential): Promise<boolean> {
    const row = [...ownerColumns(owner), checkName('name', name), Buffer.from(sealed)]
    const { put, replace } = this.#sql
    return this.#isChanged(
      version === undefined ? put : replace,
      version === undefined ? row : [...row, version],
    )
  }

  async remove(owner: Owner, name: string): Promise<boolean> {
    return this.#isChanged(this.#sql.remove, [...ownerColumns(owner), checkName('name', name)])
  }

  async lockRefresh(owner: Owner, { name, version, leaseMs }: RefreshLock): Promise<boolean> {
    const values = [...ownerColumns(owner), checkName('name', name), version, leaseMs]
    return this.#isChanged(this.#sql.lock, values)
  }

  async touch(owner: Owner, name: string): Promise<void> {
    await this.#isChanged(this.#sql.touch, [...ownerColumns(owner), checkName('name', name)])
  }

  async addAttempt(owner: Owner, { id, sealed, maxAgeMs }: NewAttempt): Promise<void> {
    const row = [...ownerColumns(owner), checkName('id', id), Buffer.from(sealed), maxAgeMs]
    await this.#database.query(this.#sql.addAttempt, row)
  }

  async takeAttempt(appName: string, id: string): Promise<TakenAttempt | undefined> {
    const key = [checkName('appName', appName), checkName('id', id)]
    const [row] = await this.#database.query<AttemptRow>(this.#sql.takeAttempt, key)
    return row?.is_valid === true
      ? { principalId: row.principal_id, sealed: row.sealed }
      : undefined
  }

  async removeOld(unusedMs: number): Promise<void> {
    await this.#database.query(this.#sql.removeAttempts, [])
    await this.#database.query(this.#sql.removeUnused, [unusedMs])
  }

  async #isChanged(sql: string, values: unknown[]): Promise<boolean> {
    return (await this.#database.query(sql, values)).length > 0
  }
}

interface CredentialRow {
  readonly name: string
  readonly sealed: Buffer
  readonly version: number
  readonly used_at: number
}

interface AttemptRow {
  readonly principal_id: string
  readonly sealed: Buffer
  readonly is_valid: boolean
}

function credentialSql(schema: string, { clock }: Clocks) {
  const [credentials, attempts] = [`${schema}.credentials`, `${schema}.sign_in_attempts`]
  const key = 'app_name = $1 AND principal_id = $2 AND name = $3'
  return {
    list: `
      SELECT name, sealed, version, used_at FROM ${credentials}
      WHERE app_name = $1 AND principal_id = $2 ORDER BY name`,
    put: `
      INSERT INTO ${credentials} AS known (app_name, principal_id, name, sealed, version, used_at, refresh_until)
      SELECT $1, $2, $3, $4::bytea, 1, ${clock}, 0
      ON CONFLICT (app_name, principal_id, name) DO UPDATE SET sealed = excluded.sealed,
        version = known.version + 1, used_at = excluded.used_at, refresh_until = 0
      RETURNING 1`,
    replace: `
      UPDATE ${credentials} SET sealed = $4::bytea, version = version + 1, used_at = ${clock}, refresh_until = 0
      WHERE ${key} AND version = $5 RETURNING 1`,
    remove: `DELETE FROM ${credentials} WHERE ${key} RETURNING 1`,
    lock: `
      UPDATE ${credentials} SET refresh_until = ${clock} + $5::double precision
      WHERE ${key} AND version = $4 AND refresh_until <= ${clock} RETURNING 1`,
    touch: `UPDATE ${credentials} SET used_at = ${clock} WHERE ${key} RETURNING 1`,
    addAttempt: `
      INSERT INTO ${attempts} (app_name, principal_id, id, sealed, expires_at)
      SELECT $1, $2, $3, $4::bytea, ${clock} + $5::double precision`,
    takeAttempt: `
      DELETE FROM ${attempts} WHERE app_name = $1 AND id = $2
      RETURNING principal_id, sealed, expires_at > ${clock} AS is_valid`,
    removeAttempts: `DELETE FROM ${attempts} WHERE expires_at <= ${clock}`,
    removeUnused: `DELETE FROM ${credentials} WHERE used_at <= ${clock} - $1::double precision`,
  }
}

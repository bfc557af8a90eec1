import type { FeatureDatabase, SharedFeature } from './feature-tables.ts'
import type { Bytes } from './query.ts'
import { toBuffer } from './query.ts'
import { checkName, ownerColumns } from '../keys.ts'
import type { Owner } from '../keys.ts'

/**
 * Stores the credentials that people gave the agent by signing in, and sign-ins that have begun. The bridge encrypts both, so that
 * the database contains no token and no key.
 */
export interface CredentialStore {
  /** Returns all credentials of a principal. */
  list(owner: Owner): Promise<StoredCredential[]>
  /**
   * Stores a credential, in place of the one with the same name. With `version`, only if the stored one has this version: a
   * credential that was removed or replaced meanwhile is not written. Returns whether it was stored.
   */
  save(owner: Owner, credential: NewCredential): Promise<boolean>
  /** Removes a credential. Returns false if there is none. */
  remove(owner: Owner, name: string): Promise<boolean>
  /**
   * Gives one caller the right to refresh a credential of this version for `leaseMs`. Returns false if another caller has it, or if
   * the credential has another version.
   */
  lockRefresh(owner: Owner, refresh: RefreshLock): Promise<boolean>
  /** Records that a credential was used. */
  touch(owner: Owner, name: string): Promise<void>
  /** Stores a sign-in that has begun. It can be taken once, within `maxAgeMs`. */
  addAttempt(owner: Owner, attempt: NewAttempt): Promise<void>
  /** Returns a sign-in that has begun, and removes it. Returns undefined if it was taken, has expired, or never began. */
  takeAttempt(appName: string, id: string): Promise<TakenAttempt | undefined>
  /** Removes credentials that were not used for `unusedMs`, and sign-ins that have expired. */
  removeOld(unusedMs: number): Promise<void>
}

/** A credential as the store keeps it. */
export interface StoredCredential {
  /** The provider and the scopes. */
  readonly name: string
  /** The encrypted credential. */
  readonly sealed: Uint8Array
  /** Changes each time the credential is stored. */
  readonly version: number
  /** When it was last used, in ms. */
  readonly usedAt: number
}

/** A credential to store. */
export interface NewCredential extends Pick<StoredCredential, 'name' | 'sealed'> {
  /** The version that it replaces. Default: any, or none. */
  readonly version?: number
}

/** Names the credential that {@link CredentialStore.lockRefresh} locks. */
export interface RefreshLock extends Pick<StoredCredential, 'name' | 'version'> {
  readonly leaseMs: number
}

/** A sign-in that has begun. */
export interface NewAttempt {
  /** The hash of the `state` parameter. */
  readonly id: string
  readonly sealed: Uint8Array
  readonly maxAgeMs: number
}

/** A sign-in that was taken from the store. */
export interface TakenAttempt {
  readonly principalId: string
  readonly sealed: Uint8Array
}

interface CredentialRow {
  readonly name: string
  readonly sealed: Bytes
  readonly version: number
  readonly used_at: number
}

interface AttemptRow {
  readonly principal_id: string
  readonly sealed: Bytes
  readonly is_valid: boolean | number
}

export const CREDENTIALS: SharedFeature<CredentialStore> = {
  owned: ['credentials', 'sign_in_attempts'],
  open,
}

function open({ clock, read, write, writeDurably }: FeatureDatabase): CredentialStore {
  const isNamed = 'app_name = $1 AND principal_id = $2 AND name = $3'
  const list = read<CredentialRow>(`
    SELECT name, sealed, version, used_at FROM $schema.credentials
    WHERE app_name = $1 AND principal_id = $2 ORDER BY name`)
  const put = writeDurably(`
    INSERT INTO $schema.credentials AS known (app_name, principal_id, name, sealed, version, used_at, refresh_until)
    VALUES ($1, $2, $3, $4::bytea, 1, ${clock}, 0)
    ON CONFLICT (app_name, principal_id, name) DO UPDATE SET sealed = excluded.sealed,
      version = known.version + 1, used_at = excluded.used_at, refresh_until = 0
    RETURNING 1`)
  const replace = writeDurably(`
    UPDATE $schema.credentials SET sealed = $4::bytea, version = version + 1, used_at = ${clock}, refresh_until = 0
    WHERE ${isNamed} AND version = $5 RETURNING 1`)
  const remove = writeDurably(`DELETE FROM $schema.credentials WHERE ${isNamed} RETURNING 1`)
  const lockRefresh = writeDurably(`
    UPDATE $schema.credentials SET refresh_until = ${clock} + $5::double precision
    WHERE ${isNamed} AND version = $4 AND refresh_until <= ${clock} RETURNING 1`)
  const touch = write(`UPDATE $schema.credentials SET used_at = ${clock} WHERE ${isNamed}`)
  const addAttempt = writeDurably(`
    INSERT INTO $schema.sign_in_attempts (app_name, principal_id, id, sealed, expires_at)
    VALUES ($1, $2, $3, $4::bytea, ${clock} + $5::double precision)`)
  const takeAttempt = writeDurably<AttemptRow>(`
    DELETE FROM $schema.sign_in_attempts WHERE app_name = $1 AND id = $2
    RETURNING principal_id, sealed, expires_at > ${clock} AS is_valid`)
  const oldAttempts = `FROM $schema.sign_in_attempts WHERE expires_at <= ${clock}`
  const unused = `FROM $schema.credentials WHERE used_at <= ${clock} - $1::double precision`
  const findOld = read(`
    SELECT 1 AS found WHERE EXISTS (SELECT 1 ${oldAttempts}) OR EXISTS (SELECT 1 ${unused})`)
  const removeAttempts = writeDurably(`DELETE ${oldAttempts}`)
  const removeUnused = writeDurably(`DELETE ${unused}`)
  return {
    async list(owner) {
      const rows = await list(...ownerColumns(owner))
      return rows.map(({ name, sealed, version, used_at: usedAt }) => ({
        name,
        sealed: toBuffer(sealed),
        version,
        usedAt,
      }))
    },
    async save(owner, { name, sealed, version }) {
      const row = [...ownerColumns(owner), checkName('name', name), Buffer.from(sealed)]
      const saved = await (version === undefined ? put(...row) : replace(...row, version))
      return saved.length > 0
    },
    remove: async (owner, name) =>
      (await remove(...ownerColumns(owner), checkName('name', name))).length > 0,
    async lockRefresh(owner, { name, version, leaseMs }) {
      const key = [...ownerColumns(owner), checkName('name', name)]
      return (await lockRefresh(...key, version, leaseMs)).length > 0
    },
    async touch(owner, name) {
      await touch(...ownerColumns(owner), checkName('name', name))
    },
    async addAttempt(owner, { id, sealed, maxAgeMs }) {
      const key = [...ownerColumns(owner), checkName('id', id)]
      await addAttempt(...key, Buffer.from(sealed), maxAgeMs)
    },
    async takeAttempt(appName, id) {
      const [row] = await takeAttempt(checkName('appName', appName), checkName('id', id))
      if (!row?.is_valid) return undefined
      return { principalId: row.principal_id, sealed: toBuffer(row.sealed) }
    },
    async removeOld(unusedMs) {
      // Usually nothing is old, and this query takes no lock.
      if ((await findOld(unusedMs)).length === 0) return
      await removeAttempts()
      await removeUnused(unusedMs)
    },
  }
}

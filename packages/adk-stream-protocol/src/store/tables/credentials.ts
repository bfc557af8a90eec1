import type { Query, Bytes } from './query.ts'
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

/** The statements for credentials. Those that change a credential return a row if they did. */
interface CredentialQueries {
  readonly list: Query<CredentialRow>
  readonly put: Query
  /** Its last value is the version to replace. */
  readonly replace: Query
  readonly remove: Query
  readonly lockRefresh: Query
  readonly touch: Query
  readonly addAttempt: Query
  readonly takeAttempt: Query<AttemptRow>
  readonly removeOld: (unusedMs: number) => Promise<void>
}

interface CredentialRow {
  readonly name: string
  readonly sealed: Bytes
  readonly version: number
  readonly used_at: number
}

export interface AttemptRow {
  readonly principal_id: string
  readonly sealed: Bytes
  readonly is_valid: boolean | number
}

export function credentialStore(queries: CredentialQueries): CredentialStore {
  return {
    async list(owner) {
      const rows = await queries.list(...ownerColumns(owner))
      return rows.map(({ name, sealed, version, used_at: usedAt }) => ({
        name,
        sealed: toBuffer(sealed),
        version,
        usedAt,
      }))
    },
    async save(owner, { name, sealed, version }) {
      const row = [...ownerColumns(owner), checkName('name', name), Buffer.from(sealed)]
      const saved = await (version === undefined
        ? queries.put(...row)
        : queries.replace(...row, version))
      return saved.length > 0
    },
    async remove(owner, name) {
      const removed = await queries.remove(...ownerColumns(owner), checkName('name', name))
      return removed.length > 0
    },
    async lockRefresh(owner, { name, version, leaseMs }) {
      const key = [...ownerColumns(owner), checkName('name', name)]
      return (await queries.lockRefresh(...key, version, leaseMs)).length > 0
    },
    async touch(owner, name) {
      await queries.touch(...ownerColumns(owner), checkName('name', name))
    },
    async addAttempt(owner, { id, sealed, maxAgeMs }) {
      const key = [...ownerColumns(owner), checkName('id', id)]
      await queries.addAttempt(...key, Buffer.from(sealed), maxAgeMs)
    },
    async takeAttempt(appName, id) {
      const key = [checkName('appName', appName), checkName('id', id)]
      const [row] = await queries.takeAttempt(...key)
      if (!row?.is_valid) return undefined
      return { principalId: row.principal_id, sealed: toBuffer(row.sealed) }
    },
    removeOld: queries.removeOld,
  }
}

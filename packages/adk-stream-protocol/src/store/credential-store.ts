import type { Owner } from './retention-store.ts'

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

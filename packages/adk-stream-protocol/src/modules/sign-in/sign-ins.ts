import { createHash, timingSafeEqual } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

import type { AuthConfig, AuthCredential } from '@google/adk'
import { AuthCredentialTypes } from '@google/adk'
import * as z from 'zod'

import type { SignedInService, SignInTerms } from '../../protocol/sign-in-terms.ts'
import type { CredentialSource } from './sign-in-kind.ts'
import { nameOf } from './sign-in-kind.ts'
import type { Store } from '../../store/store.ts'
import type { CredentialStore, StoredCredential } from '../../store/tables/credentials.ts'
import type { Owner } from '../../store/keys.ts'
import { StoreError } from '../../store/store-error.ts'
import { openJson, sealJson } from '../../server/auth/seal.ts'
import { isRefusedGrant, OAuthClient, PendingAuthorization, Tokens } from './oauth-client.ts'
import type { SignInOptions, SignInProvider } from './sign-in-options.ts'
import { toKey } from './sign-in-options.ts'

const ATTEMPT_MS = 600_000
const DAY_MS = 86_400_000
const UNUSED_MS = 90 * DAY_MS
/** How long one process may take to refresh a credential, in ms. Longer than the timeout of the request. */
const REFRESH_LEASE_MS = 30_000
const POLL_MS = 50
/** A token that expires within this time is refreshed before a tool uses it, in ms. */
const LEEWAY_MS = 30_000

/** A credential as it is encrypted. */
const Credential = z.discriminatedUnion('type', [
  Tokens.extend({ type: z.literal('oauth'), signedInAt: z.number() }),
  z.object({ type: z.literal('apiKey'), apiKey: z.string(), signedInAt: z.number() }),
])
type Credential = z.infer<typeof Credential>

/** What the server remembers of a sign-in while the person is at the provider. */
const Attempt = PendingAuthorization.extend({
  provider: z.string(),
  scopes: z.array(z.string()),
  approvalId: z.string(),
  /** The hash of the cookie of the browser that began the sign-in. */
  browser: z.string(),
})
type Attempt = z.infer<typeof Attempt>

/** A sign-in that came back from the provider, before the code is exchanged. */
export interface ReturnedSignIn {
  readonly owner: Owner
  readonly approvalId: string
  readonly attempt: Attempt
}

/** The sign-ins of people to other services: their flow, and the credentials that they gave. */
export class SignIns implements CredentialSource {
  readonly #options: SignInOptions
  readonly #appName: string
  readonly #credentials: CredentialStore
  readonly #key: Buffer
  readonly #clients = new Map<string, OAuthClient>()

  constructor(
    options: SignInOptions,
    parts: {
      readonly appName: string
      readonly credentials: CredentialStore
      readonly key: Buffer
    },
  ) {
    this.#options = options
    this.#appName = parts.appName
    this.#credentials = parts.credentials
    this.#key = parts.key
    for (const [name, provider] of Object.entries(options.providers))
      if (provider.type !== 'apiKey') this.#clients.set(name, new OAuthClient(provider))
  }

  /** Opens the sign-ins on a store. Throws if the store cannot keep credentials. */
  static async open(options: SignInOptions, appName: string, store: Store): Promise<SignIns> {
    const { credentials } = store
    if (!credentials)
      throw new StoreError(
        'invalid',
        'The store cannot keep credentials. Implement `credentials` of the interface `Store`, or leave out the option `signIn`.',
      )
    const key = toKey(options.encryptionKey) ?? (await store.secret('credentials'))
    return new SignIns(options, { appName, credentials, key })
  }

  resolve({ credentialKey, authScheme }: AuthConfig): SignInTerms | undefined {
    const provider = this.#providerOf(credentialKey)
    if (!provider) return undefined
    const { label = credentialKey, type } = provider
    if (provider.type === 'apiKey') {
      const { help } = provider
      return { provider: credentialKey, label, type, scopes: [], ...(help && { help }) }
    }
    const asked = readScopes(authScheme)
    const scopes = asked.length === 0 ? provider.scopes : asked
    if (!scopes.every((scope) => provider.scopes.includes(scope))) return undefined
    return { provider: credentialKey, label, type, scopes: [...scopes] }
  }

  async load(owner: Owner): Promise<(signIn: SignInTerms) => AuthCredential | undefined> {
    const stored = await this.#credentials.list(toOwner(owner))
    const valid = new Map<string, AuthCredential>()
    for (const row of stored) {
      const credential = this.#open(owner, row)
      if (!credential || !isValid(credential)) continue
      valid.set(row.name, toAuthCredential(credential))
      if (row.usedAt < Date.now() - DAY_MS) await this.#credentials.touch(toOwner(owner), row.name)
    }
    return (signIn) => valid.get(nameOf(signIn))
  }

  async renew(
    owner: Owner,
    signIn: SignInTerms,
    rejected: AuthCredential | undefined,
  ): Promise<AuthCredential | undefined> {
    const name = nameOf(signIn)
    const key = toOwner(owner)
    const client = this.#clients.get(signIn.provider)
    for (const started = performance.now(); ;) {
      const stored = (await this.#credentials.list(key)).find((row) => row.name === name)
      const credential = stored && this.#open(owner, stored)
      if (!stored || !credential) return undefined
      const current = toAuthCredential(credential)
      // Another process, or another call of this one, may have refreshed it meanwhile.
      if (isValid(credential) && !isSame(current, rejected)) return current
      if (!client || credential.type !== 'oauth' || credential.refreshToken === undefined) {
        await this.#credentials.remove(key, name)
        return undefined
      }
      const lock = { name, version: stored.version, leaseMs: REFRESH_LEASE_MS }
      if (await this.#credentials.lockRefresh(key, lock))
        return this.#refresh(owner, { client, credential, stored })
      if (performance.now() - started > 2 * REFRESH_LEASE_MS)
        throw new StoreError(
          'busy',
          `The sign-in to ${signIn.label} is being refreshed for too long.`,
        )
      await delay(POLL_MS)
    }
  }

  async #refresh(
    owner: Owner,
    {
      client,
      credential,
      stored,
    }: {
      readonly client: OAuthClient
      readonly credential: Extract<Credential, { type: 'oauth' }>
      readonly stored: StoredCredential
    },
  ): Promise<AuthCredential | undefined> {
    const { name, version } = stored
    const key = toOwner(owner)
    try {
      const tokens = await client.refresh(credential)
      const next = { ...credential, ...tokens }
      await this.#credentials.save(key, { name, sealed: this.#seal(owner, name, next), version })
      return toAuthCredential(next)
    } catch (error) {
      if (await isRefusedGrant(error)) {
        await this.#credentials.remove(key, name)
        return undefined
      }
      // Storing it unchanged releases the lock.
      await this.#credentials.save(key, { name, sealed: stored.sealed, version })
      throw error
    }
  }

  /** Begins a sign-in at an OAuth provider. Returns the URL for the person. `browser` is the cookie of their browser. */
  async begin(
    owner: Owner,
    signIn: SignInTerms,
    request: {
      readonly approvalId: string
      readonly browser: string
      readonly prompt?: 'login' | 'select_account' | undefined
    },
  ): Promise<{ readonly url: string; readonly expiresAt: number } | undefined> {
    const client = this.#clients.get(signIn.provider)
    if (!client) return undefined
    const { attemptMs = ATTEMPT_MS, unusedMs = UNUSED_MS } = this.#options
    const { url, pending } = await client.begin({
      redirectUri: this.#redirectUri(signIn.provider),
      scopes: signIn.scopes,
      prompt: request.prompt,
    })
    const { provider, scopes } = signIn
    const { approvalId } = request
    const browser = digest(request.browser)
    const attempt: Attempt = { ...pending, provider, scopes: [...scopes], approvalId, browser }
    const id = digest(pending.state)
    const sealed = sealJson(attempt, this.#context(owner.principalId, `attempt ${id}`), this.#key)
    await this.#credentials.removeOld(unusedMs)
    await this.#credentials.addAttempt(toOwner(owner), { id, sealed, maxAgeMs: attemptMs })
    return { url, expiresAt: Date.now() + attemptMs }
  }

  /**
   * Takes the sign-in that a request of the provider's callback belongs to. Returns undefined if it was used before, has expired, began
   * in another browser, or belongs to another provider.
   */
  async take(callback: {
    readonly provider: string
    readonly state: string
    readonly browser: string
  }): Promise<ReturnedSignIn | undefined> {
    const id = digest(callback.state)
    const taken = await this.#credentials.takeAttempt(this.#appName, id)
    if (!taken) return undefined
    const { principalId, sealed } = taken
    const context = this.#context(principalId, `attempt ${id}`)
    const attempt = Attempt.parse(openJson(sealed, context, this.#key))
    if (attempt.provider !== callback.provider) return undefined
    if (!timingSafeEqual(Buffer.from(attempt.browser), Buffer.from(digest(callback.browser))))
      return undefined
    return {
      owner: { appName: this.#appName, principalId },
      approvalId: attempt.approvalId,
      attempt,
    }
  }

  /** Exchanges the code of a sign-in that was taken, and stores the tokens. `search` is the query of the callback. */
  async finish({ owner, attempt }: ReturnedSignIn, search: string): Promise<void> {
    const client = this.#clients.get(attempt.provider)
    if (!client) throw new Error(`The provider ${attempt.provider} is not configured.`)
    // Never the URL of the request, whose host a client chooses.
    const callback = new URL(`${this.#redirectUri(attempt.provider)}${search}`)
    const tokens = await client.finish(callback, attempt)
    await this.#save(owner, nameOf(attempt), { type: 'oauth', ...tokens, signedInAt: Date.now() })
  }

  /** Stores an API key. Returns false if the service rejects it. */
  async saveApiKey(owner: Owner, signIn: SignInTerms, apiKey: string): Promise<boolean> {
    const provider = this.#providerOf(signIn.provider)
    if (provider?.type !== 'apiKey') return false
    // A JavaScript function may return any value. Only `true` accepts the key.
    const accepted: unknown = provider.check ? await provider.check(apiKey) : true
    if (accepted !== true) return false
    await this.#save(owner, nameOf(signIn), { type: 'apiKey', apiKey, signedInAt: Date.now() })
    return true
  }

  /** Lists the sign-ins of a principal, without their secrets. */
  async list(owner: Owner): Promise<SignedInService[]> {
    const rows = await this.#credentials.list(toOwner(owner))
    return rows.flatMap((row) => {
      const credential = this.#open(owner, row)
      if (!credential) return []
      const [provider = '', ...scopes] = row.name.split(' ')
      const { label = provider } = this.#providerOf(provider) ?? {}
      const { signedInAt } = credential
      const account = credential.type === 'oauth' ? credential.account : undefined
      return [{ provider, label, scopes, signedInAt, ...(account !== undefined && { account }) }]
    })
  }

  /**
   * Removes the credentials of a principal for a provider, and revokes them there. Returns their number, and whether the provider
   * confirmed all revocations.
   */
  async remove(
    owner: Owner,
    provider: string,
    onError: (error: unknown) => void,
  ): Promise<{ readonly removed: number; readonly revoked: boolean }> {
    let [removed, revoked] = [0, true]
    for (const row of await this.#credentials.list(toOwner(owner))) {
      if (row.name.split(' ', 1)[0] !== provider) continue
      if (!(await this.#credentials.remove(toOwner(owner), row.name))) continue
      removed += 1
      const credential = this.#open(owner, row)
      const isRevoked = await this.#revoke(provider, credential).catch((error: unknown) => {
        onError(error)
        return false
      })
      revoked &&= isRevoked
    }
    return { removed, revoked: removed > 0 && revoked }
  }

  async #revoke(provider: string, credential: Credential | undefined): Promise<boolean> {
    const client = this.#clients.get(provider)
    return client && credential?.type === 'oauth' ? client.revoke(credential) : false
  }

  async #save(owner: Owner, name: string, credential: Credential): Promise<void> {
    const sealed = this.#seal(owner, name, credential)
    await this.#credentials.save(toOwner(owner), { name, sealed })
  }

  #seal({ principalId }: Owner, name: string, credential: Credential): Uint8Array {
    return sealJson(credential, this.#context(principalId, name), this.#key)
  }

  /** Decrypts a credential. One that cannot be decrypted, for example after a change of the key, counts as missing. */
  #open({ principalId }: Owner, { name, sealed }: StoredCredential): Credential | undefined {
    try {
      return Credential.parse(openJson(sealed, this.#context(principalId, name), this.#key))
    } catch {
      return undefined
    }
  }

  #context(principalId: string, name: string): string {
    return JSON.stringify([this.#appName, principalId, name])
  }

  #providerOf(name: string): SignInProvider | undefined {
    const { providers } = this.#options
    return Object.hasOwn(providers, name) ? providers[name] : undefined
  }

  #redirectUri(provider: string): string {
    return `${this.#options.baseUrl}/sign-in/${provider}/callback`
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

function toOwner({ appName, principalId }: Owner): Owner {
  return { appName, principalId }
}

function isValid(credential: Credential): boolean {
  if (credential.type === 'apiKey' || credential.expiresAt === undefined) return true
  return credential.expiresAt - LEEWAY_MS > Date.now()
}

function isSame(credential: AuthCredential, other: AuthCredential | undefined): boolean {
  if (!other) return false
  return (
    credential.apiKey === other.apiKey &&
    credential.oauth2?.accessToken === other.oauth2?.accessToken
  )
}

/** Returns what a tool receives: the access token without the refresh token, or the API key. */
function toAuthCredential(credential: Credential): AuthCredential {
  if (credential.type === 'apiKey')
    return { authType: AuthCredentialTypes.API_KEY, apiKey: credential.apiKey }
  const { accessToken, expiresAt } = credential
  return {
    authType: AuthCredentialTypes.OAUTH2,
    oauth2: { accessToken, ...(expiresAt !== undefined && { expiresAt }) },
  }
}

/** Where an auth scheme names scopes: in its flow, or in a list. */
const ScopedScheme = z.object({
  scopes: z.array(z.string()).optional(),
  flows: z
    .object({
      authorizationCode: z.object({ scopes: z.record(z.string(), z.unknown()) }).optional(),
    })
    .optional(),
})

/** Returns the scopes that a tool names in its auth scheme. */
function readScopes(scheme: unknown): readonly string[] {
  const { scopes, flows } = ScopedScheme.safeParse(scheme).data ?? {}
  return scopes ?? Object.keys(flows?.authorizationCode?.scopes ?? {})
}

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

import { ProtocolError } from '../../protocol/errors.ts'
import { keepNewest } from '../../shared/collections.ts'
import { readError } from '../../store/read-error.ts'

/** The user, service or browser that sends a request. Chats are visible only to the principal that created them. */
export interface Principal {
  /** A stable, unique id of 1 to 256 characters. */
  readonly id: string
  /** The roles of the principal, for approvals that a role decides. */
  readonly roles?: readonly string[]
  /**
   * When the credentials expire, in ms since 1970. Open sockets and feeds are authenticated again at this time, in addition to the
   * interval `limits.reauthenticateMs`. Default: they do not expire.
   */
  readonly expiresAt?: number
  /** Other attributes, such as name, tenant or locale. The agent receives them only through the option `context`. */
  readonly attributes?: Readonly<Record<string, unknown>>
  /** Headers for the response, for example a cookie that identifies the principal in later requests. */
  readonly responseHeaders?: Readonly<Record<string, string>>
}

/** The request that an `Authenticate` function receives. It has no body: the bridge reads the body afterwards. */
export interface AuthenticateRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Headers
}

/**
 * Returns the principal of a request, or undefined if the request has no credentials of this kind. Throw
 * `new ProtocolError('unauthenticated')` to reject invalid credentials.
 */
export type Authenticate = (
  request: AuthenticateRequest,
) => Principal | undefined | Promise<Principal | undefined>

/** Tries several authenticators in order. Returns the first principal. */
export function anyOf(...authenticators: readonly Authenticate[]): Authenticate {
  return async (request) => {
    for (const authenticate of authenticators) {
      const principal = await authenticate(request)
      if (principal) return principal
    }
    return undefined
  }
}

/**
 * Authenticates requests by the header `X-API-Key`. `principals` maps each key to a principal or its id.
 *
 * @example apiKey({ [process.env.API_KEY]: 'inbox-bot' })
 */
export function apiKey(principals: Readonly<Record<string, string | Principal>>): Authenticate {
  const keys = Object.entries(principals).map(([key, principal]) => ({
    digest: digest(key),
    principal: typeof principal === 'string' ? { id: principal } : principal,
  }))
  if (keys.some(({ principal }) => principal.id === '') || Object.hasOwn(principals, '')) {
    throw new TypeError('apiKey needs a non-empty key and a non-empty principal id for each entry.')
  }
  return ({ headers }) => {
    const sent = headers.get('x-api-key')
    if (sent === null) return undefined
    const sentDigest = digest(sent)
    // All digests have the same length and every key is compared, so the time reveals nothing about a key.
    const found = keys.filter((key) => timingSafeEqual(key.digest, sentDigest))[0]
    if (!found) throw new ProtocolError('unauthenticated', { message: 'The API key is not valid.' })
    return found.principal
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/**
 * Options of `signedCookie`.
 *
 * @inline
 */
export interface SignedCookieOptions {
  /** The key that signs the cookie, at least 16 bytes. `() => store.secret('cookie')` returns one that persists across restarts. */
  readonly secret: string | Uint8Array | (() => Promise<Uint8Array>)
  /** The name of the cookie. Over https it gets the prefix `__Host-`, so that no other host can set it. Default `adk_principal`. */
  readonly name?: string
  /** How long the cookie is valid, in days. Default 365. */
  readonly maxAgeDays?: number
  /**
   * Whether the cookie is sent over https only. Default: true if the request used https, directly or according to a proxy in
   * `trustedProxies`.
   */
  readonly secure?: boolean
}

/** Gives every browser a principal of its own, identified by a signed cookie. A forged cookie is ignored and replaced. */
export function signedCookie(options: SignedCookieOptions): Authenticate {
  const plainName = options.name ?? 'adk_principal'
  const maxAge = Math.round((options.maxAgeDays ?? 365) * 86_400)
  const { secret } = options
  let key = typeof secret === 'function' ? undefined : secret
  let loading: Promise<Uint8Array> | undefined
  const verified = new Set<string>()
  const identify = (request: AuthenticateRequest, secretKey: string | Uint8Array): Principal => {
    if (secretKey.length < 16)
      throw new TypeError('signedCookie needs a secret of at least 16 bytes.')
    const secure = options.secure ?? request.url.protocol === 'https:'
    const name =
      secure && !/^__(?:Host|Secure)-/.test(plainName) ? `__Host-${plainName}` : plainName
    const known = readPrincipal(request, name, { key: secretKey, verified })
    return known === undefined ? createCookie(secretKey, { name, maxAge, secure }) : { id: known }
  }
  return (request) => {
    // Without a promise, the bridge needs no timer for this call.
    if (key !== undefined || typeof secret !== 'function') return identify(request, key ?? '')
    loading ??= secret()
    return loading.then((loaded) => identify(request, (key = loaded)))
  }
}

function readPrincipal(
  { headers }: AuthenticateRequest,
  name: string,
  { key, verified }: SignatureCheck,
): string | undefined {
  for (const value of readCookies(headers, name)) {
    const [id = '', signature = ''] = value.split('.', 2)
    const signed = `${id}.${signature}`
    if (!verified.has(signed) && !isSignature(signature, sign(id, key))) continue
    verified.add(signed)
    keepNewest(verified, MAX_VERIFIED)
    return id
  }
  return undefined
}

/** Returns the values of all cookies with a name. */
export function readCookies(headers: Headers, name: string): string[] {
  return (headers.get('cookie') ?? '').split(';').flatMap((pair) => {
    const [key, value = ''] = pair.trim().split('=', 2)
    return key === name ? [value] : []
  })
}

interface SignatureCheck {
  readonly key: string | Uint8Array
  /** Ids with valid signatures. The key never changes. */
  readonly verified: Set<string>
}

const MAX_VERIFIED = 1_000

function createCookie(
  key: string | Uint8Array,
  cookie: { name: string; maxAge: number; secure: boolean },
): Principal {
  const id = `browser-${randomBytes(16).toString('base64url')}`
  const secure = cookie.secure ? '; Secure' : ''
  const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${cookie.maxAge}${secure}`
  const value = `${cookie.name}=${id}.${sign(id, key)}; ${attributes}`
  return { id, responseHeaders: { 'set-cookie': value } }
}

function sign(id: string, key: string | Uint8Array): string {
  return createHmac('sha256', key).update(id).digest('base64url')
}

function isSignature(actual: string, expected: string): boolean {
  const [a, b] = [Buffer.from(actual), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/**
 * Returns a function that authenticates a request again. It throws `unauthenticated` if the credentials no longer identify the same
 * principal: a session may expire or a key may be revoked while a socket or a feed is open for hours (WS16, EV140).
 */
export function credentialCheck(
  request: AuthenticateRequest,
  { id, responseHeaders }: Principal,
  identify: (request: AuthenticateRequest) => Promise<Principal>,
): () => Promise<Principal> {
  /** The cookie that the handshake set, as the client sends it back. */
  const cookie = responseHeaders && readSetCookie(responseHeaders)
  return async () => {
    const principal = await identify(cookie === undefined ? request : withCookie(request, cookie))
    if (principal.id !== id) throw new ProtocolError('unauthenticated')
    return principal
  }
}

/** Returns the request with the cookie of the handshake, as the client sends its next one. */
function withCookie(
  { method, url, headers }: AuthenticateRequest,
  cookie: string,
): AuthenticateRequest {
  const next = new Headers(headers)
  const [name] = cookie.split('=', 1)
  const kept = (headers.get('cookie') ?? '')
    .split(';')
    .filter((pair) => pair.trim() !== '' && pair.trim().split('=', 1)[0] !== name)
  next.set('cookie', [...kept, cookie].join('; '))
  return { method, url, headers: next }
}

function readSetCookie(responseHeaders: Readonly<Record<string, string>>): string | undefined {
  return new Headers(responseHeaders).get('set-cookie')?.split(';', 1)[0]
}

/** An open connection whose credentials are checked repeatedly. */
export interface Rechecked {
  /** Authenticates again. Rejects with `unauthenticated` if the credentials have ended. */
  checkPrincipal(): Promise<Principal>
  /** Called when the credentials are still valid. The roles may have changed. */
  onChecked?(principal: Principal): void
  /** Called at most once, when the credentials have ended. */
  onCredentialsEnd(): void
}

/**
 * Checks the credentials of an open connection at an interval and when they expire, until the returned function is called. A check that
 * fails for another reason is repeated, unless the credentials have expired.
 */
export function recheckCredentials(
  connection: Rechecked,
  principal: Principal,
  everyMs: number,
): () => void {
  let { expiresAt = Infinity } = principal
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  const schedule = (): void => {
    const delay = Math.min(everyMs, Math.max(expiresAt - Date.now(), 0), MAX_TIMER_MS)
    timer = setTimeout(() => void check(), delay)
  }
  const check = async (): Promise<void> => {
    const isValid = await connection.checkPrincipal().then(
      (checked) => {
        expiresAt = checked.expiresAt ?? Infinity
        if (!isStopped) connection.onChecked?.(checked)
        return true
      },
      (error: unknown) => readError(error).code !== 'unauthenticated',
    )
    if (isStopped) return
    if (isValid && expiresAt > Date.now()) schedule()
    else connection.onCredentialsEnd()
  }
  schedule()
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}

/** The longest delay of a Node.js timer, in ms. A timer with a longer delay fires at once. */
export const MAX_TIMER_MS = 2_147_483_647

/** Returns a tag that distinguishes principals and does not contain their ids. */
export function tagPrincipal({ id }: Principal): string {
  return createHash('sha256').update(`adk-principal:${id}`).digest('base64url').slice(0, 22)
}

/** SE1120: throws if a decision or a message names another principal than the one that sends it. */
export function checkDecidedAs(principal: Principal, tag: string | null | undefined): void {
  if (typeof tag === 'string' && tag !== tagPrincipal(principal))
    throw new ProtocolError('other-principal')
}

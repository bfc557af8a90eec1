import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

import type { Authenticate, AuthenticateRequest, Principal } from './authenticate.ts'

/** How the cookie is signed, and for how long it stands. */
export interface SignedCookieOptions {
  /** What the cookie is signed with, at least 16 bytes. `() => store.secret('cookie')` gives one that outlives restarts. */
  readonly secret: string | Uint8Array | (() => Promise<Uint8Array>)
  /** Default `adk_principal`. Over https it gets the prefix `__Host-`, so that no other host can set it. */
  readonly name?: string
  /** Default 365. */
  readonly maxAgeDays?: number
  /**
   * Whether the cookie is for https only. Default: when the request came by https, also if a proxy says so that `createBridge`
   * is told to trust (`trustedProxies`).
   */
  readonly secure?: boolean
}

/** Makes every browser a principal of its own, known again by a signed cookie. A forged cookie is a new browser. */
export function signedCookie(options: SignedCookieOptions): Authenticate {
  const plainName = options.name ?? 'adk_principal'
  const maxAge = Math.round((options.maxAgeDays ?? 365) * 86_400)
  const { secret } = options
  let given: Promise<string | Uint8Array> | undefined
  return async (request) => {
    given ??= typeof secret === 'function' ? secret() : Promise.resolve(secret)
    const key = await given
    if (key.length < 16) throw new TypeError('signedCookie needs a secret of at least 16 bytes.')
    const secure = options.secure ?? request.url.protocol === 'https:'
    const name =
      secure && !/^__(?:Host|Secure)-/.test(plainName) ? `__Host-${plainName}` : plainName
    const known = readPrincipal(request, name, key)
    return known === undefined ? createCookie(key, { name, maxAge, secure }) : { id: known }
  }
}

function readPrincipal(
  { headers }: AuthenticateRequest,
  name: string,
  key: string | Uint8Array,
): string | undefined {
  for (const pair of (headers.get('cookie') ?? '').split(';')) {
    const [cookieName, value = ''] = pair.trim().split('=', 2)
    if (cookieName !== name) continue
    const [id = '', signature = ''] = value.split('.', 2)
    if (isSignature(signature, sign(id, key))) return id
  }
  return undefined
}

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

function isSignature(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

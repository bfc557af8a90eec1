import { createHash, timingSafeEqual } from 'node:crypto'

import { ProtocolError } from '../../protocol/errors.ts'

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

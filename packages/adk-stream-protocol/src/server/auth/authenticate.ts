/** Who is asking. Everything a principal makes is visible to that principal only. */
export interface Principal {
  /** Stable and unique, 1 to 256 characters. */
  readonly id: string
  /** What the principal may do, for approvals that are decided by role. */
  readonly roles?: readonly string[]
  /**
   * When the credentials end, in ms since 1970. Open sockets and feeds are checked again at that moment, besides the interval of
   * `limits.reauthenticateMs`. Default: they do not end by themselves.
   */
  readonly expiresAt?: number
  /** What else is known of the principal, such as name, tenant or locale. It reaches the agent by the option `context` alone. */
  readonly attributes?: Readonly<Record<string, unknown>>
  /** Headers for the response, for example a cookie that keeps the principal. */
  readonly responseHeaders?: Readonly<Record<string, string>>
}

/** What can be known of a request before its body is read. */
export interface AuthenticateRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Headers
}

/**
 * Tells who is asking, or nothing when the request carries no credentials of this kind. Credentials that are wrong are refused by
 * throwing `new ProtocolError('unauthenticated')`.
 */
export type Authenticate = (
  request: AuthenticateRequest,
) => Principal | undefined | Promise<Principal | undefined>

/** The first of several ways to authenticate that knows the request. */
export function anyOf(...ways: readonly Authenticate[]): Authenticate {
  return async (request) => {
    for (const way of ways) {
      const principal = await way(request)
      if (principal) return principal
    }
    return undefined
  }
}

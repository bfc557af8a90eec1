import { ProtocolError, toProtocolError } from '../protocol/errors.ts'
import { StoreError } from '../store/store-error.ts'
import type { Authenticate, AuthenticateRequest, Principal } from './authenticate.ts'
import type { Exchange, JsonReply, Reply } from './exchange.ts'
import { reply, withHeaders } from './exchange.ts'
import { checkOrigin, PREFLIGHT_HEADERS } from './origin.ts'
import type { Route } from './routes.ts'
import { findRoute, isKnownPath } from './routes.ts'

export interface FrontDoorOptions {
  readonly routes: readonly Route[]
  readonly authenticate: Authenticate
  readonly allowedOrigins: readonly string[]
  readonly basePath: string
  readonly onError: (error: unknown) => void
}

/** Where sockets are opened. */
export const LIVE_PATH = '/live'

/** Who was let in, and what the handshake carries for them; or the answer to who was not. */
export type Admission =
  | { readonly principal: Principal; readonly headers: Readonly<Record<string, string>> }
  | { readonly refusal: JsonReply }

/** Lets requests in: origin, address, principal, in that order; and turns what goes wrong behind it into an answer. */
export class FrontDoor {
  readonly #options: FrontDoorOptions

  constructor(options: FrontDoorOptions) {
    this.#options = options
  }

  handles(pathname: string): boolean {
    return isKnownPath(this.#options.routes, this.#strip(pathname))
  }

  /** Answers an exchange. Never throws. */
  async respond(exchange: Exchange): Promise<Reply> {
    // A refusal carries what was known by then: without the CORS headers a page could not even read it.
    const headers: Record<string, string> = {}
    try {
      Object.assign(headers, checkOrigin(exchange.headers, this.#options.allowedOrigins))
      if (exchange.method === 'OPTIONS')
        return withHeaders(reply(204), { ...headers, ...PREFLIGHT_HEADERS })
      const pathname = this.#strip(exchange.url.pathname)
      const { route, id, name } = findRoute(this.#options.routes, exchange.method, pathname)
      if (route.public) return withHeaders(route.handle(), headers)
      const principal = await this.identify(exchange)
      Object.assign(headers, principal.responseHeaders)
      return withHeaders(await route.handle({ principal, id, name, exchange }), headers)
    } catch (thrown) {
      return withHeaders(this.#refuse(thrown), headers)
    }
  }

  /** Lets a socket in at the one address that has them. Never throws. */
  async admit(exchange: Exchange): Promise<Admission> {
    try {
      checkOrigin(exchange.headers, this.#options.allowedOrigins)
      if (this.#strip(exchange.url.pathname) !== LIVE_PATH) throw new ProtocolError('not-found')
      const principal = await this.identify(exchange)
      return { principal, headers: principal.responseHeaders ?? {} }
    } catch (thrown) {
      return { refusal: this.#refuse(thrown) }
    }
  }

  /** Who is asking. */
  async identify(request: AuthenticateRequest): Promise<Principal> {
    return checkPrincipal(await this.#options.authenticate(request))
  }

  #refuse(thrown: unknown): JsonReply {
    const error = readError(thrown)
    if (error.status >= 500) this.#options.onError(error.cause ?? error)
    const { retryAfterSeconds } = error
    return withHeaders(
      reply(error.status, error),
      retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
    )
  }

  #strip(pathname: string): string {
    const { basePath } = this.#options
    return pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : '/'
  }
}

/** A database that cannot be used is a passing state; anything else unforeseen is a fault of ours. */
export function readError(thrown: unknown): ProtocolError {
  return thrown instanceof StoreError
    ? new ProtocolError('unavailable', { cause: thrown, retryAfterSeconds: 5 })
    : toProtocolError(thrown)
}

function checkPrincipal(principal: Principal | undefined): Principal {
  if (!principal) throw new ProtocolError('unauthenticated')
  if (principal.id === '' || principal.id.length > 256) {
    throw new TypeError('authenticate must return a principal whose id has 1 to 256 characters.')
  }
  return principal
}

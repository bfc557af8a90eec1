import { ProtocolError } from '../../protocol/errors.ts'
import type { Authenticate, AuthenticateRequest, Principal } from '../auth/authenticate.ts'
import { Credentials } from '../auth/credentials.ts'
import type { Exchange, JsonReply, Reply } from './exchange.ts'
import { reply, withHeaders } from './exchange.ts'
import type { AllowedHosts } from './allowed-hosts.ts'
import { isAllowedHost } from './allowed-hosts.ts'
import type { Drain } from '../drain.ts'
import { checkOrigin, PREFLIGHT_HEADERS } from './allowed-origins.ts'
import type { Proxies } from './trusted-proxies.ts'
import type { Route } from './route.ts'
import { findRoute, isKnownPath } from './route.ts'
import { readError } from './read-error.ts'

export interface HttpRouterOptions {
  readonly routes: readonly Route[]
  readonly authenticate: Authenticate
  readonly allowedOrigins: readonly string[]
  readonly allowedHosts: AllowedHosts
  readonly proxies: Proxies
  readonly basePath: string
  readonly drain: Drain
  readonly onError: (error: unknown) => void
}

/** The path of sockets. */
export const LIVE_PATH = '/live'

/** The principal of an upgrade request with headers for the handshake, or the refusal. */
export type UpgradeResult =
  | { readonly principal: Principal; readonly headers: Readonly<Record<string, string>> }
  | { readonly refusal: JsonReply }

/** The maximum number of different origins and hosts that are reported. */
const MAX_REPORTED = 100

/** Checks the origin, path, host and principal of a request, in this order, and calls its route. Converts every error to a reply. */
export class HttpRouter {
  readonly #options: HttpRouterOptions
  /** Messages about refused origins and hosts that were reported. */
  readonly #reported = new Set<string>()

  constructor(options: HttpRouterOptions) {
    this.#options = options
  }

  /** Whether the bridge serves this path. */
  handles(pathname: string): boolean {
    const path = this.#strip(pathname)
    return path !== undefined && isKnownPath(this.#options.routes, path)
  }

  /** Whether this is the path of sockets. */
  opensSockets(pathname: string): boolean {
    return this.#strip(pathname) === LIVE_PATH
  }

  /** Handles a request. Never throws. */
  async respond(received: Exchange): Promise<Reply> {
    const exchange = this.#options.proxies.read(received)
    // Errors carry these headers too: without the CORS headers a page could not read the error.
    const headers: Record<string, string> = {}
    try {
      Object.assign(headers, checkOrigin(exchange.headers, this.#options.allowedOrigins))
      if (exchange.method === 'OPTIONS')
        return withHeaders(reply(204), { ...headers, ...PREFLIGHT_HEADERS })
      const pathname = this.#strip(exchange.url.pathname)
      if (pathname === undefined) throw new ProtocolError('not-found')
      const { route, id, name } = findRoute(this.#options.routes, exchange.method, pathname)
      if (route.public) return withHeaders(await route.handle(), headers)
      this.#checkHost(exchange)
      if (isNewWork(route)) this.#options.drain.refuseNewWork()
      const principal = await this.identify(exchange)
      Object.assign(headers, principal.responseHeaders)
      const credentials = new Credentials(exchange, principal, (request) => this.identify(request))
      const recheckPrincipal = () => credentials.check()
      const request = { principal, id, name, exchange, checkPrincipal: recheckPrincipal }
      return withHeaders(await route.handle(request), headers)
    } catch (thrown) {
      return withHeaders(this.#refuse(thrown), headers)
    }
  }

  /** Returns the client address of a request, or undefined if the address may belong to a proxy. */
  clientOf(exchange: Exchange): string | undefined {
    return this.#options.proxies.clientOf(exchange)
  }

  /** Returns the request with the scheme and address that trusted proxies report. */
  readProxied(exchange: Exchange): Exchange {
    return this.#options.proxies.read(exchange)
  }

  /** Checks an upgrade request. Never throws. */
  async authorizeUpgrade(exchange: Exchange): Promise<UpgradeResult> {
    try {
      checkOrigin(exchange.headers, this.#options.allowedOrigins)
      this.#checkHost(exchange)
      const principal = await this.identify(exchange)
      return { principal, headers: principal.responseHeaders ?? {} }
    } catch (thrown) {
      return { refusal: this.#refuse(thrown) }
    }
  }

  /** Returns the principal of a request. Throws `unauthenticated` if there is none. */
  async identify(request: AuthenticateRequest): Promise<Principal> {
    return checkPrincipal(await this.#options.authenticate(request))
  }

  #checkHost({ headers, url }: Exchange): void {
    const host = headers.get('host') ?? url.host
    if (isAllowedHost(host, this.#options.allowedHosts)) return
    const name = JSON.stringify(host.slice(0, 200))
    const message = `Refused a request with Host: ${name}. If this is a host name of the server, add it to createBridge's \`allowedHosts\`.`
    const cause = new ProtocolError('forbidden-host', { message })
    throw new ProtocolError('forbidden-host', { cause })
  }

  #refuse(thrown: unknown): JsonReply {
    const error = readError(thrown)
    if (error.status >= 500) this.#options.onError(error.cause ?? error)
    else if (error.code === 'forbidden-host' || error.code === 'forbidden-origin')
      this.#reportOnce(error.cause)
    const { retryAfterSeconds } = error
    return withHeaders(
      reply(error.status, error),
      retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
    )
  }

  /** Reports once to `onError` how to allow a refused host or origin. The client only receives a general error. */
  #reportOnce(cause: unknown): void {
    const text = String(cause)
    if (this.#reported.size >= MAX_REPORTED || this.#reported.has(text)) return
    this.#reported.add(text)
    this.#options.onError(cause)
  }

  /** Returns the path without `basePath`, or undefined for a path outside of it. */
  #strip(pathname: string): string | undefined {
    const { basePath } = this.#options
    if (pathname === basePath) return '/'
    return pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : undefined
  }
}

/** Whether a closing bridge refuses a route: all routes except reading and stopping. */
function isNewWork({ method, path }: Route): boolean {
  return method !== 'GET' && !path.endsWith('/stop')
}

function checkPrincipal(principal: Principal | undefined): Principal {
  if (!principal) throw new ProtocolError('unauthenticated')
  if (principal.id === '' || principal.id.length > 256) {
    throw new TypeError('authenticate must return a principal whose id has 1 to 256 characters.')
  }
  return principal
}

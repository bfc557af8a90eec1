import { callInTime } from '../../shared/async.ts'
import { PRINCIPAL_HEADER } from '../../protocol/error-codes.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { ChatId } from '../../protocol/stream-request.ts'
import { StoreError } from '../../store/store-error.ts'
import type { Authenticate, AuthenticateRequest, Principal } from '../auth/authenticate.ts'
import { checkDecidedAs, credentialCheck, tagPrincipal } from '../auth/authenticate.ts'
import type { Drain } from '../settings/drain.ts'
import type { Exchange, JsonReply, Reply } from './exchange.ts'
import { reply, withHeaders } from './exchange.ts'
import { readError } from '../../store/read-error.ts'
import type { AllowedHosts, Proxies } from './hosts-and-proxies.ts'
import { PREFLIGHT_HEADERS, checkOrigin, isAllowedHost } from './hosts-and-proxies.ts'

export interface HttpRouterOptions {
  readonly routes: readonly Route[]
  readonly authenticate: Authenticate
  readonly allowedOrigins: readonly string[]
  readonly allowedHosts: AllowedHosts
  readonly proxies: Proxies
  readonly basePath: string
  readonly drain: Drain
  readonly onError: (error: unknown) => void
  /** Called for each request or upgrade that is refused. */
  readonly onRefused: (error: ProtocolError) => void
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
  readonly #routes: readonly SplitRoute[]
  /** Messages about refused origins and hosts that were reported. */
  readonly #reported = new Set<string>()

  constructor(options: HttpRouterOptions) {
    this.#options = options
    this.#routes = options.routes.map((route) => ({ route, expected: route.path.split('/') }))
  }

  /** Whether the bridge serves this path. */
  handles(pathname: string): boolean {
    const path = this.#strip(pathname)
    return path !== undefined && matchRoutes(this.#routes, path).length > 0
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
      const { route, id, name } = findRoute(this.#routes, exchange.method, pathname)
      if (route.access === 'public')
        return withHeaders(await route.handle({ id, name, exchange }), headers)
      this.#checkHost(exchange)
      if (isNewWork(route)) this.#options.drain.refuseNewWork()
      if (route.access === 'anonymous') {
        const known = await this.#identifyIfPossible(exchange)
        Object.assign(headers, known?.responseHeaders)
        return withHeaders(await route.handle({ principal: known, id, exchange }), headers)
      }
      const principal = await this.identify(exchange)
      Object.assign(headers, principal.responseHeaders, {
        [PRINCIPAL_HEADER]: tagPrincipal(principal),
      })
      checkDecidedAs(principal, exchange.headers.get(PRINCIPAL_HEADER))
      const checkAgain = credentialCheck(exchange, principal, (request) => this.identify(request))
      const request = { principal, id, name, exchange, checkPrincipal: checkAgain }
      const result = await route.handle(request)
      // The cookie of a route goes before that of `authenticate`, which every response can renew.
      return withHeaders(result, { ...headers, ...result.headers })
    } catch (thrown) {
      return withHeaders(this.#refuse(thrown), headers)
    }
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
    const { authenticate } = this.#options
    return checkPrincipal(await callInTime('`authenticate`', () => authenticate(request)))
  }

  /** Returns the principal of a request, or undefined if it has no valid credentials. */
  async #identifyIfPossible(request: AuthenticateRequest): Promise<Principal | undefined> {
    try {
      return await this.identify(request)
    } catch (error) {
      if (readError(error).code === 'unauthenticated') return undefined
      throw error
    }
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
    const { drain } = this.#options
    // TU91: another server has the chat.
    const error =
      drain.isActive() && thrown instanceof StoreError && thrown.code === 'closed'
        ? new ProtocolError('unavailable', { cause: thrown, retryAfterSeconds: 1 })
        : readError(thrown)
    this.#options.onRefused(error)
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
function isNewWork({ method, isServedWhileClosing = method === 'GET' }: Route): boolean {
  return !isServedWhileClosing
}

function checkPrincipal(principal: Principal | undefined): Principal {
  if (!principal) throw new ProtocolError('unauthenticated')
  // The types of the application are not checked at run time.
  const { id, roles = [] }: { readonly id: unknown; readonly roles?: unknown } = principal
  if (typeof id !== 'string' || id === '' || id.length > 256)
    throw new TypeError(
      'authenticate must return a principal whose id is a string of 1 to 256 characters.',
    )
  if (!Array.isArray(roles))
    throw new TypeError('authenticate must return a principal whose roles are a list of strings.')
  return principal
}

/** A request of an authenticated principal. */
export interface AuthenticatedRequest {
  readonly principal: Principal
  /** The `:id` in the path: a chat or approval id. Empty if the path has none. */
  readonly id: string
  /** The `:name` in the path, such as a call id. Empty if the path has none. */
  readonly name: string
  readonly exchange: Exchange
  /** Authenticates again, for feeds that outlive the request. Throws `unauthenticated` if the credentials have ended. */
  readonly checkPrincipal: () => Promise<Principal>
}

/** A request of any client. */
export type PublicRequest = Pick<AuthenticatedRequest, 'id' | 'name' | 'exchange'>

/** A route of the bridge. `:id` is a chat or approval, `:name` something in it. */
export type Route = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  /** TU91: whether a closing bridge serves the route. It then refuses new work itself. Default: for `GET`. */
  readonly isServedWhileClosing?: boolean
} & (
  | {
      readonly access: 'public'
      readonly handle: (request: PublicRequest) => Reply | Promise<Reply>
    }
  /** The body of the request proves what it may do. */
  | {
      readonly access: 'anonymous'
      readonly handle: (request: AnonymousRequest) => Promise<Reply>
    }
  | {
      readonly access?: undefined
      readonly handle: (request: AuthenticatedRequest) => Promise<Reply>
    }
)

/** A request that needs no principal. */
export interface AnonymousRequest extends Pick<AuthenticatedRequest, 'id' | 'exchange'> {
  /** The principal, if the request has valid credentials. */
  readonly principal: Principal | undefined
}

interface RouteMatch extends Pick<AuthenticatedRequest, 'id' | 'name'> {
  readonly route: Route
}

/** A route with the segments of its path. */
interface SplitRoute {
  readonly route: Route
  readonly expected: readonly string[]
}

/** Returns the routes of a path, for any method. */
function matchRoutes(routes: readonly SplitRoute[], pathname: string): RouteMatch[] {
  const segments = pathname.split('/')
  const matches: RouteMatch[] = []
  for (const { route, expected } of routes) {
    const names = matchPath(expected, segments)
    if (names !== undefined) matches.push({ route, ...names })
  }
  return matches
}

/** Returns the route of a request. Throws if there is none, or if an id in the path is invalid. */
function findRoute(routes: readonly SplitRoute[], method: string, pathname: string): RouteMatch {
  const matches = matchRoutes(routes, pathname)
  if (matches.length === 0) throw new ProtocolError('not-found')
  const match = matches.find(({ route }) => route.method === method)
  if (!match) throw new ProtocolError('method-not-allowed')
  const isValid = match.id === '' || ChatId.safeParse(match.id).success
  if (!isValid || match.name === NO_ID || match.name.length > MAX_NAME_LENGTH) {
    throw new ProtocolError('bad-request', { message: 'The path has no valid id.' })
  }
  return match
}

/** Returns the parameters of a path, or undefined if the path does not match. */
function matchPath(
  expected: readonly string[],
  segments: readonly string[],
): Pick<AuthenticatedRequest, 'id' | 'name'> | undefined {
  if (expected.length !== segments.length) return undefined
  let id = ''
  let name = ''
  for (const [index, segment] of segments.entries()) {
    if (expected[index] === ':id') id = decode(segment)
    else if (expected[index] === ':name') name = decode(segment)
    else if (expected[index] !== segment) return undefined
  }
  return { id, name }
}

const NO_ID = '?'
const MAX_NAME_LENGTH = 256

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment) || NO_ID
  } catch {
    // An invalid escape sequence. The id check rejects it.
    return NO_ID
  }
}

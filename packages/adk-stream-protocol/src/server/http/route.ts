import { ProtocolError } from '../../protocol/errors.ts'
import { ChatId } from '../../protocol/stream-request.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { Exchange, Reply } from './exchange.ts'

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

/** A route of the bridge. `:id` is a chat or approval, `:name` something in it. Only `public` routes need no principal. */
export type Route = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
} & (
  | { readonly public: true; readonly handle: () => Reply | Promise<Reply> }
  | { readonly public?: false; readonly handle: (request: AuthenticatedRequest) => Promise<Reply> }
)

export interface RouteMatch extends Pick<AuthenticatedRequest, 'id' | 'name'> {
  readonly route: Route
}

/** Whether the path has a route for any method. */
export function isKnownPath(routes: readonly Route[], pathname: string): boolean {
  return routes.some((route) => matchPath(route.path, pathname) !== undefined)
}

/** Returns the route of a request. Throws if there is none, or if an id in the path is invalid. */
export function findRoute(routes: readonly Route[], method: string, pathname: string): RouteMatch {
  const matches = routes.flatMap((route) => {
    const names = matchPath(route.path, pathname)
    return names === undefined ? [] : [{ route, ...names }]
  })
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
  path: string,
  pathname: string,
): Pick<AuthenticatedRequest, 'id' | 'name'> | undefined {
  const expected = path.split('/')
  const segments = pathname.split('/')
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

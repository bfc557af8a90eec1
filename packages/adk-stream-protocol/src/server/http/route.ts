import { ProtocolError } from '../../protocol/errors.ts'
import { ChatId } from '../../protocol/stream-request.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { Exchange, Reply } from './exchange.ts'

/** A request that was let in. */
export interface AuthenticatedRequest {
  readonly principal: Principal
  /** The id in the address: of a chat or of an approval; empty for an address without one. */
  readonly id: string
  /** The second name in the address, such as that of a call; empty for an address without one. */
  readonly name: string
  readonly exchange: Exchange
  /** The principal as it is now; refused when its credentials have ended since. For what outlives the request. */
  readonly checkPrincipal: () => Promise<Principal>
}

/** An address of the bridge; `:id` stands for a chat or an approval, `:name` for something in it. Without a principal, only `public` ones answer. */
export type Route = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
} & (
  | { readonly public: true; readonly handle: () => Reply | Promise<Reply> }
  | { readonly public?: false; readonly handle: (visit: AuthenticatedRequest) => Promise<Reply> }
)

export interface RouteMatch extends Pick<AuthenticatedRequest, 'id' | 'name'> {
  readonly route: Route
}

/** Whether any method is answered at this path. */
export function isKnownPath(routes: readonly Route[], pathname: string): boolean {
  return routes.some((route) => matchPath(route.path, pathname) !== undefined)
}

/** Finds the route for a request, or throws what is wrong with the request. */
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
    throw new ProtocolError('bad-request', { message: 'The address holds no valid id.' })
  }
  return match
}

/** The names in the path, empty where it has none; nothing for another path. */
function matchPath(
  path: string,
  pathname: string,
): Pick<AuthenticatedRequest, 'id' | 'name'> | undefined {
  const expected = path.split('/')
  const given = pathname.split('/')
  if (expected.length !== given.length) return undefined
  let id = ''
  let name = ''
  for (const [index, segment] of given.entries()) {
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
    // Not a valid escape, so not an id either; the check of the id refuses it.
    return NO_ID
  }
}

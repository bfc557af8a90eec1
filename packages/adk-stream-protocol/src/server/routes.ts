import { ProtocolError } from '../protocol/errors.ts'
import { ChatId } from '../protocol/stream-request.ts'
import type { Principal } from './authenticate.ts'
import type { Exchange, Reply } from './exchange.ts'

/** A request that was let in. */
export interface Visit {
  readonly principal: Principal
  /** The id in the address: of a chat or of an approval; empty for an address without one. */
  readonly id: string
  readonly exchange: Exchange
}

/** An address of the bridge; `:id` stands for a chat or an approval. Without a principal, only `public` ones answer. */
export type Route = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
} & (
  | { readonly public: true; readonly handle: () => Reply | Promise<Reply> }
  | { readonly public?: false; readonly handle: (visit: Visit) => Promise<Reply> }
)

export interface RouteMatch {
  readonly route: Route
  readonly id: string
}

/** Whether any method is answered at this path. */
export function isKnownPath(routes: readonly Route[], pathname: string): boolean {
  return routes.some((route) => matchPath(route.path, pathname) !== undefined)
}

/** Finds the route for a request, or throws what is wrong with the request. */
export function findRoute(routes: readonly Route[], method: string, pathname: string): RouteMatch {
  const matches = routes.flatMap((route) => {
    const id = matchPath(route.path, pathname)
    return id === undefined ? [] : [{ route, id }]
  })
  if (matches.length === 0) throw new ProtocolError('not-found')
  const match = matches.find(({ route }) => route.method === method)
  if (!match) throw new ProtocolError('method-not-allowed')
  if (match.id !== '' && !ChatId.safeParse(match.id).success) {
    throw new ProtocolError('bad-request', { message: 'The address holds no valid id.' })
  }
  return match
}

/** The id in the path, empty for a path without one, nothing for another path. */
function matchPath(path: string, pathname: string): string | undefined {
  const expected = path.split('/')
  const given = pathname.split('/')
  if (expected.length !== given.length) return undefined
  let id = ''
  for (const [index, segment] of given.entries()) {
    if (expected[index] === ':id') id = decode(segment)
    else if (expected[index] !== segment) return undefined
  }
  return id
}

const NO_ID = '?'

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment) || NO_ID
  } catch {
    // Not a valid escape, so not an id either; the check of the id refuses it.
    return NO_ID
  }
}

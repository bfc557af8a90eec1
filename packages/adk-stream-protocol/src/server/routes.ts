import { ProtocolError } from '../protocol/errors.ts'
import { ChatId } from '../protocol/stream-request.ts'
import type { ChatKey } from '../turns/turns.ts'
import type { Exchange, Reply } from './exchange.ts'

/** An address of the bridge; `:chatId` stands for a chat of whoever asks. */
export type Route = { readonly method: 'GET' | 'POST' | 'DELETE'; readonly path: string } & (
  | { readonly access: 'public'; readonly handle: () => Reply }
  | {
      readonly access: 'principal'
      readonly handle: (chat: ChatKey, exchange: Exchange) => Promise<Reply>
    }
)

export interface RouteMatch {
  readonly route: Route
  /** Empty for an address without one. */
  readonly chatId: string
}

/** Whether any method is answered at this path. */
export function isKnownPath(routes: readonly Route[], pathname: string): boolean {
  return routes.some((route) => matchPath(route.path, pathname) !== undefined)
}

/** Finds the route for a request, or throws what is wrong with the request. */
export function findRoute(routes: readonly Route[], method: string, pathname: string): RouteMatch {
  const matches = routes.flatMap((route) => {
    const chatId = matchPath(route.path, pathname)
    return chatId === undefined ? [] : [{ route, chatId }]
  })
  if (matches.length === 0) throw new ProtocolError('not-found')
  const match = matches.find(({ route }) => route.method === method)
  if (!match) throw new ProtocolError('method-not-allowed')
  if (match.chatId !== '' && !ChatId.safeParse(match.chatId).success) {
    throw new ProtocolError('bad-request', { message: 'The address holds no valid chat id.' })
  }
  return match
}

/** The chat id in the path, empty for a path without one, nothing for another path. */
function matchPath(path: string, pathname: string): string | undefined {
  const expected = path.split('/')
  const given = pathname.split('/')
  if (expected.length !== given.length) return undefined
  let chatId = ''
  for (const [index, segment] of given.entries()) {
    if (expected[index] === ':chatId') chatId = decode(segment)
    else if (expected[index] !== segment) return undefined
  }
  return chatId
}

const NO_CHAT_ID = '?'

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment) || NO_CHAT_ID
  } catch {
    // Not a valid escape, so not a chat id either; the check of the id refuses it.
    return NO_CHAT_ID
  }
}

import { BIDI_SUBPROTOCOL } from '../../protocol/bidi-events.ts'
import { ProtocolError, toProtocolError } from '../../protocol/errors.ts'
import { ChatId } from '../../protocol/stream-request.ts'
import { readDialect } from '../http/read-request.ts'
import type { Exchange } from '../http/exchange.ts'

const BIDI = 'bidi'

/**
 * Whether the client of a socket asks for text frames: by the subprotocol, by `?dialect=bidi`, alone or beside another one, or by
 * `?chatId=` without a subprotocol. Other frames name their chats themselves.
 */
export function asksForBidi({ url }: Exchange, subprotocol: string): boolean {
  if (subprotocol !== '') return subprotocol === BIDI_SUBPROTOCOL || dialectsIn(url).includes(BIDI)
  return url.searchParams.has('chatId') || dialectsIn(url).includes(BIDI)
}

/** The request with the dialect of its turns alone: text frames are a way to write any of them. */
export function withoutBidi(exchange: Exchange): Exchange {
  const rest = dialectsIn(exchange.url).filter((name) => name !== BIDI)
  const url = new URL(exchange.url)
  url.searchParams.delete('dialect')
  if (rest.length > 0) url.searchParams.set('dialect', rest.join(','))
  const { method, headers, readBody } = exchange
  return { method, headers, readBody, url }
}

/** What is wrong with the address of a socket: its dialect or its chat. */
export function findUrlFault(exchange: Exchange): ProtocolError | undefined {
  try {
    readDialect(withoutBidi(exchange))
  } catch (thrown) {
    return toProtocolError(thrown)
  }
  const chatId = exchange.url.searchParams.get('chatId') ?? undefined
  const issue = ChatId.optional().safeParse(chatId).error?.issues[0]
  return issue && new ProtocolError('bad-request', { message: issue.message })
}

function dialectsIn(url: URL): string[] {
  return url.searchParams.getAll('dialect').flatMap((value) => value.split(','))
}

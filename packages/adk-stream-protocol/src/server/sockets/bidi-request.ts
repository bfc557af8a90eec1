import { BIDI_SUBPROTOCOL } from '../../protocol/bidi-events.ts'
import { ProtocolError, toProtocolError } from '../../protocol/errors.ts'
import { ChatId } from '../../protocol/stream-request.ts'
import { readDialect } from '../http/read-request.ts'
import type { Exchange } from '../http/exchange.ts'

const BIDI = 'bidi'

/**
 * Whether a client requests the bidi dialect: with the subprotocol, with `?dialect=bidi` (alone or with another dialect), or with
 * `?chatId=` and no subprotocol. The frames of other clients carry their chat ids.
 */
export function asksForBidi({ url }: Exchange, subprotocol: string): boolean {
  if (subprotocol !== '') return subprotocol === BIDI_SUBPROTOCOL || dialectsIn(url).includes(BIDI)
  return url.searchParams.has('chatId') || dialectsIn(url).includes(BIDI)
}

/** Returns the request without `bidi` in its dialects: bidi frames can carry turns of any dialect. */
export function withoutBidi(exchange: Exchange): Exchange {
  const rest = dialectsIn(exchange.url).filter((name) => name !== BIDI)
  const url = new URL(exchange.url)
  url.searchParams.delete('dialect')
  if (rest.length > 0) url.searchParams.set('dialect', rest.join(','))
  const { method, headers, readBody } = exchange
  return { method, headers, readBody, url }
}

/** Returns an error if the dialect or the chat id in a socket's URL is invalid. */
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

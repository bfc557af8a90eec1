import { ProtocolError } from '../../../protocol/errors.ts'
import { ChatId } from '../../../protocol/stream-request.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { SocketProtocol } from '../../sockets/socket-protocol.ts'
import { openBidiCodec } from './bidi-codec.ts'
import type { CallFinderParts } from './bidi-conversation.ts'
import { BidiConversation, createCallFinder } from './bidi-conversation.ts'
import { BIDI_SUBPROTOCOL, isBidiShaped } from './bidi-events.ts'

/** Creates the protocol of the clients of the earlier Python server. */
export function createBidiProtocol(parts: CallFinderParts): SocketProtocol {
  const findCall = createCallFinder(parts)
  return {
    subprotocol: BIDI_SUBPROTOCOL,
    isRequested: asksForBidi,
    isFirstFrame: isBidiShaped,
    strip: withoutBidi,
    findFault: findChatFault,
    open: ({ principal, exchange, handlers, readers }) => {
      const conversation = new BidiConversation({
        handlers,
        chatId: exchange.url.searchParams.get('chatId') ?? undefined,
        reading: () => readers.turns,
        findCall: (chatId, id) => findCall({ principalId: principal.id, chatId }, id),
      })
      return {
        codec: openBidiCodec({
          handle: (event) => conversation.handle(event),
          isReading: () => readers.size > 0,
          keepsTurnsOpen: parts.runs.keepTurnsOpen,
        }),
        start: () => conversation.open(),
        admitTurn: (turn) => {
          // The frames carry no request id, so a turn is sent only once at a time.
          if (readers.turns.includes(turn)) return false
          conversation.noteRead(turn.messageId)
          return true
        },
      }
    },
  }
}

const BIDI = 'bidi'

/**
 * Whether a client requests the bidi dialect: with the subprotocol, with `?dialect=bidi` (alone or with another dialect), or with
 * `?chatId=` and no subprotocol. The frames of other clients carry their chat ids.
 */
function asksForBidi({ url }: Exchange, subprotocol: string): boolean {
  if (subprotocol !== '') return subprotocol === BIDI_SUBPROTOCOL || dialectsIn(url).includes(BIDI)
  return url.searchParams.has('chatId') || dialectsIn(url).includes(BIDI)
}

/** Returns the request without `bidi` in its dialects: bidi frames can carry turns of any dialect. */
function withoutBidi(exchange: Exchange): Exchange {
  const rest = dialectsIn(exchange.url).filter((name) => name !== BIDI)
  const url = new URL(exchange.url)
  url.searchParams.delete('dialect')
  if (rest.length > 0) url.searchParams.set('dialect', rest.join(','))
  const { method, headers, readBody } = exchange
  return { method, headers, readBody, url }
}

/** Returns an error if the chat id in a socket's URL is invalid. */
function findChatFault({ url }: Exchange): ProtocolError | undefined {
  const chatId = url.searchParams.get('chatId') ?? undefined
  const issue = ChatId.optional().safeParse(chatId).error?.issues[0]
  return issue && new ProtocolError('bad-request', { message: issue.message })
}

function dialectsIn(url: URL): string[] {
  return url.searchParams.getAll('dialect').flatMap((value) => value.split(','))
}

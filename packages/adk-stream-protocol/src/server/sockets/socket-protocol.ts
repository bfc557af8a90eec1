import type { ProtocolError } from '../../protocol/errors.ts'
import type { Turn } from '../../turns/turn.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { Exchange } from '../http/exchange.ts'
import type { FrameCodec } from './frame-codec.ts'
import type { FrameHandlers } from './connection.ts'
import type { TurnReaders } from './turn-readers.ts'

/** A protocol of text frames, for clients that do not use the JSON frames. */
export interface SocketProtocol {
  /** The WebSocket subprotocol that selects it. */
  readonly subprotocol: string
  /** Whether the request of a socket selects it. `subprotocol` is the agreed one, or empty. */
  readonly isRequested: (exchange: Exchange, subprotocol: string) => boolean
  /** Whether the first frame of a client without a subprotocol belongs to it. */
  readonly isFirstFrame: (bytes: Uint8Array) => boolean
  /** Returns the request without what selects the protocol. What is left selects the format of turns. */
  readonly strip: (exchange: Exchange) => Exchange
  /** Returns an error if the URL of a socket is invalid. */
  readonly findFault: (exchange: Exchange) => ProtocolError | undefined
  readonly open: (socket: ProtocolSocket) => SocketConversation
}

/** A socket, as a protocol sees it. */
interface ProtocolSocket {
  readonly principal: Principal
  readonly exchange: Exchange
  readonly handlers: FrameHandlers
  readonly readers: Pick<TurnReaders, 'turns' | 'size'>
}

/** The conversation of one socket in a protocol. */
export interface SocketConversation {
  readonly codec: FrameCodec
  /** Called when the socket is open. */
  readonly start: () => Promise<void>
  /** Called before a turn is sent. Returns false if it must not be sent. */
  readonly admitTurn: (turn: Turn) => boolean
}

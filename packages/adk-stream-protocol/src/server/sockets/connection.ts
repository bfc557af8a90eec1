import type { ClientFrame, ClientFrameOf } from '../../protocol/client-frame.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import type { Turn } from '../../turns/turn.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { Exchange } from '../http/exchange.ts'
import type { TurnFormat } from '../http/turn-format.ts'
import type { ReadOptions, TurnReaders } from './turn-readers.ts'

/**
 * Handles the frames of one socket: one function per frame type. If a handler throws, the client receives a refusal of that frame.
 * Sockets with open runs override some of them: `{ ...turnHandlers, ...handlers }`.
 */
export type FrameHandlers = {
  readonly [Type in ClientFrame['type']]: (frame: ClientFrameOf<Type>) => void | Promise<void>
} & {
  /** Receives audio as bytes. */
  readonly binary: (bytes: Uint8Array) => void | Promise<void>
  /** Sends all turns of a chat to the client. Unlike `watch`, it does not open a run. */
  readonly join: (chatId: string) => void
  /** Whether background work runs whose result this client receives. */
  readonly busy: () => boolean
  /** Called when the socket is closed. */
  readonly close: () => void
}

/** The frames for runs that stay open, and audio as bytes. */
export type OpenRunFrame =
  | 'text'
  | 'audio'
  | 'audio-end'
  | 'image'
  | 'activity'
  | 'interrupt'
  | 'watch'
  | 'unwatch'
  | 'binary'

/** One open socket, as seen by its handlers. */
export interface Connection {
  /** The principal that opened the socket. */
  readonly principal: Principal
  /** Returns the request that opened the socket. */
  readonly exchange: () => Exchange
  /** Returns the format of turns that the client asks for: in its URL, or by this name in a frame. */
  readonly findFormat: (inFrame?: string) => TurnFormat
  /** Authenticates again. Throws if the credentials no longer identify the same principal. */
  readonly checkPrincipal: () => Promise<Principal>
  readonly send: (frame: ServerFrame) => void
  /** Sends a turn under a request id. Does nothing if the turn is too long to be replayed. */
  readonly read: (requestId: string, turn: Turn, options: ReadOptions) => void
  /** The turns that the client reads. */
  readonly readers: Pick<TurnReaders, 'find' | 'leave' | 'has' | 'size'>
}

/** Creates the handlers of a new socket. */
export type OpenHandlers = (connection: Connection) => FrameHandlers

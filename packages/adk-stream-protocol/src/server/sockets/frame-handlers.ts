import type { ClientFrame, ClientFrameOf } from '../../protocol/client-frame.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import type { Turn } from '../../turns/turn.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { Exchange } from '../http/exchange.ts'
import type { ReadOptions } from './turn-readers.ts'

/**
 * Handles the frames of one socket: one function per frame type. If a handler throws, the client receives a refusal of that frame.
 * Live sockets override some of the handlers: `{ ...turnHandlers, ...liveHandlers }`.
 */
export type FrameHandlers = {
  readonly [Type in ClientFrame['type']]: (frame: ClientFrameOf<Type>) => void | Promise<void>
} & {
  /** Receives audio as bytes. */
  readonly binary: (bytes: Uint8Array) => void | Promise<void>
  /** Sends all turns of a chat to the client. Unlike `watch`, it does not start a live session. */
  readonly join: (chatId: string) => void
  /** Whether background work runs whose result this client receives. */
  readonly busy: () => boolean
  /** Called when the socket is closed. */
  readonly close: () => void
}

/** One open socket, as seen by its handlers. */
export interface Connection {
  /** The principal that opened the socket. */
  readonly principal: Principal
  /** Returns the request that opened the socket. */
  readonly exchange: () => Exchange
  /** Authenticates again. Throws if the credentials no longer identify the same principal. */
  readonly checkPrincipal: () => Promise<Principal>
  readonly send: (frame: ServerFrame) => void
  /** Sends audio. Returns false if it was dropped because the client is too slow. */
  readonly sendAudio: (bytes: Uint8Array) => boolean
  /** Sends a turn under a request id. Returns false if the turn is too long to be replayed. */
  readonly read: (requestId: string, turn: Turn, options: ReadOptions) => boolean
  /** Returns the turn that is read under a request. */
  readonly turnOf: (requestId: string) => Turn | undefined
  /** Stops reading a turn, and returns it. */
  readonly leave: (requestId: string) => Turn | undefined
  /** Whether a turn is read under this request. */
  readonly reads: (requestId: string) => boolean
  /** The number of turns that are read. */
  readonly reading: () => number
}

/** Creates the handlers of a new socket. */
export type OpenHandlers = (connection: Connection) => FrameHandlers

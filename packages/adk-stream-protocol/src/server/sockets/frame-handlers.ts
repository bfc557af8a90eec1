import type { ClientFrame, ClientFrameOf } from '../../protocol/client-frame.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import type { ReadOptions } from './turn-readers.ts'
import type { Turn } from '../../turns/turn.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { Exchange } from '../http/exchange.ts'

/**
 * What answers the frames of one socket: a function for each type. What it throws is told to the client as the refusal of that
 * frame. Modes differ in their handlers alone: `{ ...turnHandlers, ...liveHandlers }`.
 */
export type FrameHandlers = {
  readonly [Type in ClientFrame['type']]: (frame: ClientFrameOf<Type>) => void | Promise<void>
} & {
  /** Audio as bytes. */
  readonly binary: (bytes: Uint8Array) => void | Promise<void>
  /** Shows a client all that begins by itself in a chat. Unlike `watch`, it begins no conversation. */
  readonly join: (chatId: string) => void
  /** Whether something runs in the background whose end this client is told. */
  readonly busy: () => boolean
  /** The socket is gone. */
  readonly close: () => void
}

/** One open socket, as its handlers see it. */
export interface Connection {
  /** Who opened it. */
  readonly principal: Principal
  /** The request that opened it, made anew from what is kept of it. */
  readonly exchange: () => Exchange
  /** Asks again who it is, and throws when it is not the same one any more. */
  readonly checkPrincipal: () => Promise<Principal>
  readonly send: (frame: ServerFrame) => void
  /** Sends audio, or drops it for a client that is too slow. */
  readonly sendAudio: (bytes: Uint8Array) => boolean
  /** Sends a turn under a request. False when it is too long to be replayed. */
  readonly read: (requestId: string, turn: Turn, options: ReadOptions) => boolean
  /** Ends the reading of a turn; tells which one it was. */
  readonly leave: (requestId: string) => Turn | undefined
  /** Whether a turn is read under this request. */
  readonly reads: (requestId: string) => boolean
  /** How many turns are read. */
  readonly reading: () => number
}

/** Gives the handlers of a new socket. */
export type OpenHandlers = (connection: Connection) => FrameHandlers

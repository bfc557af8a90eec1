import type { Duplex } from 'node:stream'

import type { ClientFrame } from '../../protocol/client-frame.ts'
import type { ProtocolError } from '../../protocol/errors.ts'
import { SUBPROTOCOL } from '../../protocol/server-frame.ts'
import type { Principal, Rechecked } from '../auth/authenticate.ts'
import { recheckCredentials, tagPrincipal } from '../auth/authenticate.ts'
import type { Drain } from '../settings/drain.ts'
import type { Exchange, FindFormat } from '../http/exchange.ts'
import { readError } from '../../store/read-error.ts'
import type { BridgeLimits } from '../settings/limits.ts'
import type { FrameCodec, IncomingFrame } from './frame-codec.ts'
import { jsonCodec, nameOf } from './frame-codec.ts'
import type { Connection, FrameHandlers, OpenHandlers } from './connection.ts'
import type { ClosingSocket, Heartbeats, SocketEvents } from './socket-peer.ts'
import { SocketPeer } from './socket-peer.ts'
import type { SocketConversation, SocketProtocol } from './socket-protocol.ts'
import { TurnReaders } from './turn-readers.ts'

/** The options that all sockets share. */
export interface SocketConnectionOptions {
  readonly limits: BridgeLimits
  readonly openHandlers: OpenHandlers
  readonly findFormat: FindFormat
  /** The protocols of clients that do not use JSON frames. */
  readonly protocols: readonly SocketProtocol[]
  readonly drain: Drain
  readonly heartbeats: Heartbeats
  /** Called when a connection is closed. */
  readonly onClosed: (connection: SocketConnection) => void
  readonly onError: (error: unknown) => void
  readonly onRefused: (error: ProtocolError) => void
}

/** A socket and the request that opened it. */
interface Connected {
  readonly socket: ClosingSocket
  readonly stream: Duplex
  readonly principal: Principal
  readonly exchange: Exchange
  /** Authenticates again. Throws if the credentials no longer identify the same principal. */
  readonly checkPrincipal: () => Promise<Principal>
}

/** Handles the frames of one client. */
interface Handling {
  readonly readers: TurnReaders
  readonly handlers: FrameHandlers
}

/** Dispatches the frames of one socket to its handlers, and sends their errors to the client. */
export class SocketConnection implements SocketEvents, Rechecked {
  readonly #options: SocketConnectionOptions
  readonly #connected: Connected
  readonly #peer: SocketPeer
  readonly #stopRecheck: () => void
  /** Created at the first frame: most of thousands of sockets are silent. */
  #handling: Handling | undefined
  /** Undefined for a client that uses JSON frames. */
  #conversation: SocketConversation | undefined
  /** The number of frames whose handlers have not finished. */
  #framesInProgress = 0

  constructor(options: SocketConnectionOptions, connected: Connected) {
    this.#options = options
    this.#connected = connected
    const { limits, heartbeats, protocols } = options
    const { socket, stream, principal, exchange } = connected
    this.#peer = new SocketPeer({ socket, stream, heartbeats }, limits, this)
    this.#stopRecheck = recheckCredentials(this, principal, limits.reauthenticateMs)
    this.#use(protocols.find(({ isRequested }) => isRequested(exchange, socket.protocol)))
    // A client without a subprotocol may turn out to use a protocol without `hello`.
    if (socket.protocol === SUBPROTOCOL)
      this.#peer.send({
        type: 'hello',
        protocol: SUBPROTOCOL,
        limits: toHelloLimits(limits),
        principal: tagPrincipal(principal),
      })
    // If the running turn cannot be resumed, the client can still send messages.
    this.#conversation?.start().catch(options.onError)
  }

  /** Whether the client reads no turn and waits for no response. */
  get isIdle(): boolean {
    if (this.#framesInProgress > 0) return false
    return !this.#handling || (this.#handling.readers.size === 0 && !this.#handling.handlers.busy())
  }

  /** Closes the socket, because the bridge closes. Resolves when the connection is closed. */
  async close(): Promise<void> {
    this.#peer.close('going-away')
    await this.#peer.closed()
  }

  get codec(): FrameCodec {
    return this.#conversation?.codec ?? jsonCodec
  }

  onFirst(bytes: Uint8Array): void {
    if (this.#connected.socket.protocol !== '') return
    this.#use(this.#options.protocols.find(({ isFirstFrame }) => isFirstFrame(bytes)))
  }

  onFrame(frame: IncomingFrame): void {
    void this.#handle(frame)
  }

  onAudio(bytes: Uint8Array): void {
    void this.#handleAudio(bytes)
  }

  onDrain(): void {
    this.#handling?.readers.drained()
  }

  onClose(): void {
    this.#stopRecheck()
    this.#handling?.readers.leaveAll()
    this.#handling?.handlers.close()
  }

  onClosed(): void {
    this.#options.onClosed(this)
  }

  async checkPrincipal(): Promise<Principal> {
    try {
      return await this.#connected.checkPrincipal()
    } catch (thrown) {
      // If the check itself fails, only the current frame is refused and the socket stays open.
      if (readError(thrown).code === 'unauthenticated') this.#peer.close('unauthenticated')
      throw thrown
    }
  }

  onCredentialsEnd(): void {
    this.#peer.close('unauthenticated')
  }

  #openHandling(): Handling {
    this.#handling ??= this.#createHandling()
    return this.#handling
  }

  #createHandling(): Handling {
    const readers = new TurnReaders({
      toSink: (requestId, reading) =>
        this.codec.toSink(requestId, { ...reading, write: (frame) => this.#peer.write(frame) }),
      toOrder: (sink, seen) => this.codec.toOrder?.(sink, seen) ?? sink,
      sendAudio: (bytes) => this.#peer.sendAudio(bytes),
    })
    return { readers, handlers: this.#options.openHandlers(this.#connect(readers)) }
  }

  #connect(readers: TurnReaders): Connection {
    const { principal, exchange: opening } = this.#connected
    const exchange = (): Exchange => stripProtocols(opening, this.#options.protocols)
    return {
      principal,
      exchange,
      findFormat: (inFrame) => this.#options.findFormat(exchange(), inFrame),
      checkPrincipal: () => this.checkPrincipal(),
      send: (frame) => this.#peer.send(frame),
      read: (requestId, turn, how) => {
        if (this.#conversation?.admitTurn(turn) !== false) readers.read(requestId, turn, how)
      },
      readers,
    }
  }

  /** Switches the socket to another protocol. */
  #use(protocol: SocketProtocol | undefined): void {
    if (!protocol || this.#conversation) return
    const { principal, exchange } = this.#connected
    this.#conversation = protocol.open({ principal, exchange, ...this.#openHandling() })
  }

  async #handle(frame: IncomingFrame): Promise<void> {
    this.#framesInProgress += 1
    try {
      if (!WHILE_DRAINING.has(nameOf(frame))) this.#options.drain.refuseNewWork()
      if (frame.type === 'foreign') await frame.handle()
      else await dispatch(this.#openHandling().handlers, frame)
    } catch (thrown) {
      const error = this.#readError(thrown)
      if (frame.type !== 'foreign') return this.#refuse(frame, error)
      const { code, message } = error
      this.#peer.refuse({ frame: frame.name, requestId: undefined, code, message })
    } finally {
      this.#framesInProgress -= 1
    }
  }

  async #handleAudio(bytes: Uint8Array): Promise<void> {
    if (this.#options.drain.isActive()) return
    try {
      await this.#openHandling().handlers.binary(bytes)
    } catch (thrown) {
      const { code, message } = this.#readError(thrown)
      this.#peer.refuse({ frame: 'binary', requestId: undefined, code, message })
    }
  }

  /** Sends the refusal of a frame, in the frame type that the client waits for. */
  #refuse(frame: ClientFrame, { code, message, preview }: ProtocolError): void {
    const refusal = { ok: false, code, message, ...(preview && { preview }) } as const
    if (frame.type === 'decide')
      this.#peer.send({ type: 'decided', decisionId: frame.decisionId, ...refusal })
    else if (frame.type === 'tool-output')
      this.#peer.send({ type: 'tool-output-taken', outputId: frame.outputId, ...refusal })
    else if (frame.type === 'text' && frame.messageId !== undefined) {
      const { id, messageId } = frame
      this.#peer.send({ type: 'refused', frame: 'text', code, message, id, messageId })
    } else {
      const requestId = 'requestId' in frame ? frame.requestId : undefined
      this.#peer.refuse({ frame: frame.type, requestId, code, message })
    }
  }

  #readError(thrown: unknown): ProtocolError {
    const error = readError(thrown)
    this.#options.onRefused(error)
    if (error.status >= 500) this.#options.onError(error.cause ?? error)
    return error
  }
}

/** Frames that start no new work. */
const WHILE_DRAINING: ReadonlySet<string> = new Set<ClientFrame['type']>([
  'resume',
  'abort',
  'leave',
  'stop',
  'interrupt',
  'unwatch',
  'ping',
])

/** Returns the request of a socket without what selects a protocol. */
export function stripProtocols(exchange: Exchange, protocols: readonly SocketProtocol[]): Exchange {
  return protocols.reduce((rest, { strip }) => strip(rest), exchange)
}

function dispatch<Type extends ClientFrame['type']>(
  handlers: FrameHandlers,
  frame: Extract<ClientFrame, { type: Type }>,
): void | Promise<void> {
  // The handler of a type accepts frames of that type; TypeScript cannot correlate the two unions.
  const handle = handlers[frame.type] as unknown as (input: typeof frame) => void | Promise<void>
  return handle(frame)
}

function toHelloLimits({ maxBodyBytes, ...limits }: BridgeLimits) {
  const { maxFramesPerSecond, maxAudioFrameBytes, maxAudioBytesPerSecond } = limits
  return {
    maxFrameBytes: maxBodyBytes,
    maxFramesPerSecond,
    maxAudioFrameBytes,
    maxAudioBytesPerSecond,
  }
}

import type { Duplex } from 'node:stream'

import { isBidiShaped } from '../../protocol/bidi-events.ts'
import type { ClientFrame } from '../../protocol/client-frame.ts'
import type { ProtocolError } from '../../protocol/errors.ts'
import { SUBPROTOCOL } from '../../protocol/server-frame.ts'
import type { Principal, Rechecked } from '../auth/authenticate.ts'
import { recheckCredentials, tagPrincipal } from '../auth/authenticate.ts'
import type { Drain } from '../settings/drain.ts'
import type { Exchange } from '../http/exchange.ts'
import { readError } from '../http/exchange.ts'
import type { BridgeLimits } from '../settings/limits.ts'
import type { FindCall } from './bidi-conversation.ts'
import { BidiConversation } from './bidi-conversation.ts'
import type { Connection, FrameHandlers, OpenHandlers } from './frame-handlers.ts'
import type { IncomingFrame, SocketCodec } from './socket-codecs.ts'
import { asksForBidi, jsonCodec, openBidiCodec, withoutBidi } from './socket-codecs.ts'
import type { ClosingSocket, Heartbeats, SocketEvents } from './socket-peer.ts'
import { SocketPeer } from './socket-peer.ts'
import { TurnReaders } from './turn-readers.ts'

/** The options that all sockets share. */
export interface SocketConnectionOptions {
  readonly limits: BridgeLimits
  readonly openHandlers: OpenHandlers
  readonly findCall: FindCall
  /** Whether the turns on sockets are those of live sessions. */
  readonly hasLiveModel: boolean
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
  #codec: SocketCodec = jsonCodec
  #bidi: BidiConversation | undefined
  /** The number of frames whose handlers have not finished. */
  #framesInProgress = 0

  constructor(options: SocketConnectionOptions, connected: Connected) {
    this.#options = options
    this.#connected = connected
    const { limits, heartbeats } = options
    const { socket, stream, principal, exchange } = connected
    this.#peer = new SocketPeer({ socket, stream, heartbeats }, limits, this)
    this.#stopRecheck = recheckCredentials(this, principal, limits.reauthenticateMs)
    if (asksForBidi(exchange, socket.protocol)) this.#useBidi()
    // A client without a subprotocol may turn out to speak the bidi dialect, which has no `hello`.
    if (socket.protocol === SUBPROTOCOL)
      this.#peer.send({
        type: 'hello',
        protocol: SUBPROTOCOL,
        limits: toHelloLimits(limits),
        principal: tagPrincipal(principal),
      })
    // If the running turn cannot be resumed, the client can still send messages.
    this.#bidi?.open().catch(options.onError)
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

  get codec(): SocketCodec {
    return this.#codec
  }

  onFirst(bytes: Uint8Array): void {
    if (this.#connected.socket.protocol === '' && isBidiShaped(bytes)) this.#useBidi()
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
        this.#codec.toSink(requestId, { ...reading, write: (frame) => this.#peer.write(frame) }),
      toOrder: (sink, seen) => this.#codec.toOrder?.(sink, seen) ?? sink,
      sendAudio: (bytes) => this.#peer.sendAudio(bytes),
    })
    return { readers, handlers: this.#options.openHandlers(this.#connect(readers)) }
  }

  #connect(readers: TurnReaders): Connection {
    const { principal, exchange } = this.#connected
    return {
      principal,
      exchange: () => withoutBidi(exchange),
      checkPrincipal: () => this.checkPrincipal(),
      send: (frame) => this.#peer.send(frame),
      read: (requestId, turn, how) => {
        // Bidi frames carry no request id, so a turn is sent only once at a time.
        if (this.#bidi && readers.turns.includes(turn)) return
        this.#bidi?.noteRead(turn.messageId)
        readers.read(requestId, turn, how)
      },
      readers,
    }
  }

  /** Switches the socket to the bidi dialect. */
  #useBidi(): void {
    const { principal, exchange } = this.#connected
    const { readers, handlers } = this.#openHandling()
    const isReading = (): boolean => readers.size > 0
    this.#codec = openBidiCodec({ isReading, hasLiveModel: this.#options.hasLiveModel })
    this.#bidi ??= new BidiConversation({
      handlers,
      chatId: exchange.url.searchParams.get('chatId') ?? undefined,
      reading: () => readers.turns,
      findCall: (chatId, id) => this.#options.findCall({ principalId: principal.id, chatId }, id),
    })
  }

  async #handle(frame: IncomingFrame): Promise<void> {
    this.#framesInProgress += 1
    try {
      if (!WHILE_DRAINING.has(nameOf(frame))) this.#options.drain.refuseNewWork()
      if (frame.type === 'bidi') await this.#bidi?.handle(frame)
      else await dispatch(this.#openHandling().handlers, frame)
    } catch (thrown) {
      const error = this.#readError(thrown)
      if (frame.type !== 'bidi') return this.#refuse(frame, error)
      const { code, message } = error
      this.#peer.refuse({ frame: frame.event, requestId: undefined, code, message })
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
  'interrupt',
  'unwatch',
  'ping',
])

function nameOf(frame: IncomingFrame): string {
  return frame.type === 'bidi' ? frame.event : frame.type
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

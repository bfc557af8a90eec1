import type { Duplex } from 'node:stream'

import { isBidiShaped } from '../protocol/bidi-events.ts'
import type { ClientFrame } from '../protocol/client-frame.ts'
import type { CloseReason } from '../protocol/close-codes.ts'
import type { ProtocolError } from '../protocol/errors.ts'
import { SUBPROTOCOL } from '../protocol/server-frame.ts'
import { openBidiCodec } from '../transport/bidi-frames.ts'
import type { Heartbeats } from '../transport/heartbeat.ts'
import type { ClosingSocket } from '../transport/closing-socket.ts'
import type { IncomingFrame, SocketCodec } from '../transport/socket-codec.ts'
import { jsonCodec } from '../transport/socket-codec.ts'
import { SocketPeer } from '../transport/socket-peer.ts'
import type { ReadOptions } from '../transport/turn-readers.ts'
import { TurnReaders } from '../transport/turn-readers.ts'
import type { Turn } from '../turns/turn.ts'
import type { Principal } from './authenticate.ts'
import type { FindCall } from './bidi-conversation.ts'
import { BidiConversation } from './bidi-conversation.ts'
import { asksForBidi, withoutBidi } from './bidi-request.ts'
import type { Drain } from './drain.ts'
import type { Credentials } from './credentials.ts'
import type { Exchange } from './exchange.ts'
import type { Connection, FrameHandlers, OpenHandlers } from './frame-handlers.ts'
import { readError } from './front-door.ts'
import type { BridgeLimits } from './options.ts'
import { recheck } from './recheck.ts'

export interface LiveSocketOptions {
  readonly socket: ClosingSocket
  readonly stream: Duplex
  readonly principal: Principal
  readonly exchange: Exchange
  readonly credentials: Credentials
  readonly limits: BridgeLimits
  readonly openHandlers: OpenHandlers
  readonly findCall: FindCall
  readonly drain: Drain
  /** Of all sockets. */
  readonly heartbeats: Heartbeats
  readonly onError: (error: unknown) => void
}

/** One client on its socket: its frames go to the handlers, and what they throw goes back to the client. */
export class LiveSocket {
  readonly #options: LiveSocketOptions
  readonly #peer: SocketPeer
  readonly #readers: TurnReaders
  readonly #handlers: FrameHandlers
  readonly #stopChecking: () => void
  #codec: SocketCodec = jsonCodec
  #bidi: BidiConversation | undefined
  /** Frames that are being worked on. */
  #handling = 0

  constructor(options: LiveSocketOptions) {
    this.#options = options
    const { socket, stream, limits, exchange } = options
    this.#peer = new SocketPeer({ socket, stream, heartbeats: options.heartbeats }, limits, {
      codec: () => this.#codec,
      onFirst: (bytes) => {
        if (socket.protocol === '' && isBidiShaped(bytes)) this.#speakBidi()
      },
      onFrame: (frame) => void this.#handle(frame),
      onAudio: (bytes) => void this.#hear(bytes),
      onDrain: () => this.#readers.drained(),
      onClose: () => this.#leave(),
    })
    this.#readers = new TurnReaders({
      toSink: (requestId, onOver) => this.#codec.toSink(requestId, this.#peer.write, onOver),
      toOrder: (sink, seen) => this.#codec.toOrder?.(sink, seen) ?? sink,
      sendAudio: (bytes) => this.#peer.sendAudio(bytes),
    })
    this.#handlers = options.openHandlers(this.#connect())
    this.#stopChecking = recheck({
      principal: options.principal,
      everyMs: limits.reauthenticateMs,
      check: () => this.#check(),
      onEnd: () => this.#peer.close('unauthenticated'),
    })
    if (asksForBidi(exchange, socket.protocol)) this.#speakBidi()
    // Another client might take it for something else: one of text frames may say who it is by its first frame.
    if (socket.protocol === SUBPROTOCOL)
      this.#peer.tell({ type: 'hello', protocol: SUBPROTOCOL, limits: toldLimits(limits) })
    // Who cannot be brought back to what runs may still say something.
    this.#bidi?.open().catch(options.onError)
  }

  /** Whether the client reads nothing, and waits for nothing. */
  get isIdle(): boolean {
    return this.#handling === 0 && this.#readers.size === 0 && !this.#handlers.busy()
  }

  /** Closes the socket; resolves when it is gone. */
  async close(reason: CloseReason): Promise<void> {
    this.#peer.close(reason)
    await this.#peer.closed
  }

  #connect(): Connection {
    const { principal, exchange } = this.#options
    return {
      principal,
      get exchange() {
        return withoutBidi(exchange)
      },
      checkPrincipal: () => this.#check(),
      tell: (frame) => this.#peer.tell(frame),
      sendAudio: (bytes) => this.#peer.sendAudio(bytes),
      read: (requestId, turn, how) => this.#read(requestId, turn, how),
      leave: (requestId) => this.#readers.leave(requestId),
      reads: (requestId) => this.#readers.has(requestId),
      reading: () => this.#readers.size,
    }
  }

  /** From here on the client is spoken to in text frames. */
  #speakBidi(): void {
    const { principal, exchange, findCall } = this.#options
    this.#codec = openBidiCodec(() => this.#readers.size > 0)
    this.#bidi ??= new BidiConversation({
      handlers: this.#handlers,
      chatId: exchange.url.searchParams.get('chatId') ?? undefined,
      reading: () => this.#readers.turns,
      findCall: (chatId, id) => findCall({ principalId: principal.id, chatId }, id),
    })
  }

  #read(requestId: string, turn: Turn, how: ReadOptions): boolean {
    // Text frames name no request: a turn that is read is not told a second time among itself.
    if (this.#codec.name === 'bidi' && this.#readers.turns.includes(turn)) return true
    this.#bidi?.noteRead(turn.messageId)
    return this.#readers.read(requestId, turn, how)
  }

  async #handle(frame: IncomingFrame): Promise<void> {
    this.#handling += 1
    try {
      if (!WHILE_DRAINING.has(nameOf(frame))) this.#options.drain.refuseNewWork()
      if (frame.type === 'bidi') await this.#bidi?.hear(frame)
      else await dispatch(this.#handlers, frame)
    } catch (thrown) {
      const error = this.#readError(thrown)
      if (frame.type !== 'bidi') return this.#refuse(frame, error)
      const { code, message } = error
      this.#peer.refuse({ frame: frame.event, requestId: undefined, code, message })
    } finally {
      this.#handling -= 1
    }
  }

  async #hear(bytes: Uint8Array): Promise<void> {
    if (this.#options.drain.active) return
    try {
      await this.#handlers.binary(bytes)
    } catch (thrown) {
      const { code, message } = this.#readError(thrown)
      this.#peer.refuse({ frame: 'binary', requestId: undefined, code, message })
    }
  }

  /** Tells that a frame was not taken, in the words in which its sender waits for an answer. */
  #refuse(frame: ClientFrame, { code, message }: ProtocolError): void {
    const refusal = { ok: false, code, message } as const
    if (frame.type === 'decide')
      this.#peer.tell({ type: 'decided', decisionId: frame.decisionId, ...refusal })
    else if (frame.type === 'tool-output')
      this.#peer.tell({ type: 'tool-output-taken', outputId: frame.outputId, ...refusal })
    else {
      const requestId = 'requestId' in frame ? frame.requestId : undefined
      this.#peer.refuse({ frame: frame.type, requestId, code, message })
    }
  }

  #readError(thrown: unknown): ProtocolError {
    const error = readError(thrown)
    if (error.status >= 500) this.#options.onError(error.cause ?? error)
    return error
  }

  async #check(): Promise<Principal> {
    try {
      return await this.#options.credentials.check()
    } catch (thrown) {
      // Where it cannot be told who it is, the socket stays; what needed to know is refused.
      if (this.#readError(thrown).code === 'unauthenticated') this.#peer.close('unauthenticated')
      throw thrown
    }
  }

  #leave(): void {
    this.#stopChecking()
    this.#readers.leaveAll()
    this.#handlers.close()
  }
}

/** Frames that begin nothing. */
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
  // The handler of a type takes the frame of that type; the compiler cannot follow the pair through a union.
  const handle = handlers[frame.type] as unknown as (given: typeof frame) => void | Promise<void>
  return handle(frame)
}

function toldLimits({ maxBodyBytes, ...limits }: BridgeLimits) {
  const { maxFramesPerSecond, maxAudioFrameBytes, maxAudioBytesPerSecond } = limits
  return {
    maxFrameBytes: maxBodyBytes,
    maxFramesPerSecond,
    maxAudioFrameBytes,
    maxAudioBytesPerSecond,
  }
}

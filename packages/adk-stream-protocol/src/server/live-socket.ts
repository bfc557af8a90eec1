import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'

import type { ClientFrame } from '../protocol/client-frame.ts'
import type { CloseReason } from '../protocol/close-codes.ts'
import type { ProtocolError } from '../protocol/errors.ts'
import { SUBPROTOCOL } from '../protocol/server-frame.ts'
import { SocketPeer } from '../transport/socket-peer.ts'
import { TurnReaders } from '../transport/turn-readers.ts'
import type { Principal } from './authenticate.ts'
import type { Credentials } from './credentials.ts'
import type { Exchange } from './exchange.ts'
import type { Connection, FrameHandlers, OpenHandlers } from './frame-handlers.ts'
import { readError } from './front-door.ts'
import type { BridgeLimits } from './options.ts'

export interface LiveSocketOptions {
  readonly socket: WebSocket
  readonly stream: Duplex
  readonly principal: Principal
  readonly exchange: Exchange
  readonly credentials: Credentials
  readonly limits: BridgeLimits
  readonly openHandlers: OpenHandlers
  readonly onError: (error: unknown) => void
}

/** One client on its socket: its frames go to the handlers, and what they throw goes back to the client. */
export class LiveSocket {
  readonly #options: LiveSocketOptions
  readonly #peer: SocketPeer
  readonly #readers: TurnReaders
  readonly #handlers: FrameHandlers
  readonly #recheck: NodeJS.Timeout

  constructor(options: LiveSocketOptions) {
    this.#options = options
    const { socket, stream, limits } = options
    this.#peer = new SocketPeer({ socket, stream }, limits, {
      onFrame: (frame) => void this.#handle(frame),
      onAudio: (bytes) => void this.#hear(bytes),
      onDrain: () => this.#readers.drained(),
      onClose: () => this.#leave(),
    })
    this.#readers = new TurnReaders(this.#peer.write, (bytes) => this.#peer.sendAudio(bytes))
    this.#handlers = options.openHandlers(this.#connect())
    // What it throws was told by closing.
    this.#recheck = setInterval(
      () => void this.#check().catch(() => undefined),
      limits.reauthenticateMs,
    )
    this.#peer.tell({ type: 'hello', protocol: SUBPROTOCOL, limits: toldLimits(limits) })
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
      exchange,
      checkPrincipal: () => this.#check(),
      tell: (frame) => this.#peer.tell(frame),
      sendAudio: (bytes) => this.#peer.sendAudio(bytes),
      read: (requestId, turn, options) => this.#readers.read(requestId, turn, options),
      leave: (requestId) => this.#readers.leave(requestId),
      reads: (requestId) => this.#readers.has(requestId),
      reading: () => this.#readers.size,
    }
  }

  async #handle(frame: ClientFrame): Promise<void> {
    try {
      await dispatch(this.#handlers, frame)
    } catch (thrown) {
      this.#refuse(frame, this.#read(thrown))
    }
  }

  async #hear(bytes: Uint8Array): Promise<void> {
    try {
      await this.#handlers.binary(bytes)
    } catch (thrown) {
      const { code, message } = this.#read(thrown)
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

  #read(thrown: unknown): ProtocolError {
    const error = readError(thrown)
    if (error.status >= 500) this.#options.onError(error.cause ?? error)
    return error
  }

  async #check(): Promise<Principal> {
    try {
      return await this.#options.credentials.check()
    } catch (thrown) {
      // Where it cannot be told who it is, the socket stays; what needed to know is refused.
      if (this.#read(thrown).code === 'unauthenticated') this.#peer.close('unauthenticated')
      throw thrown
    }
  }

  #leave(): void {
    clearInterval(this.#recheck)
    this.#readers.leaveAll()
    this.#handlers.close()
  }
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

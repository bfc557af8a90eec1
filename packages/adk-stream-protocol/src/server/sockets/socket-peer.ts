import type { Duplex } from 'node:stream'

import type { RawData } from 'ws'
import { WebSocket } from 'ws'

import type { FrameFault } from '../../protocol/client-frame.ts'
import type { CloseReason } from '../../protocol/close-codes.ts'
import { CLOSE_CODES } from '../../protocol/close-codes.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import type { HeartbeatPeer, Heartbeats } from './heartbeat.ts'
import type { IncomingFrame, SocketCodec } from './socket-codec.ts'
import { audioBytesIn } from './socket-codec.ts'
import { TokenBucket } from './token-bucket.ts'

/** What a peer's messages go to. None of these may throw. */
export interface SocketEvents {
  /** How this client speaks. */
  readonly codec: SocketCodec
  /** The first frame has come, and is about to be read. */
  onFirst(bytes: Uint8Array): void
  onFrame(frame: IncomingFrame): void
  /** Audio of a client that sends it as bytes. */
  onAudio(bytes: Uint8Array): void
  /** The socket takes again what is written. */
  onDrain(): void
  /** Nothing goes either way any more; the connection may be there for a while yet. Told once. */
  onClose(): void
}

/** How large a frame is that costs as much as two: to read a large one is work. */
const COSTLY_BYTES = 131_072

/** What a frame costs that cannot be used: a few are a mistake, many are a flood. */
const FAULT_COST = 10

/** How much may wait for a client that asks and does not read, beside its answers, in characters. */
const MAX_UNREAD = 262_144

/** How much is gathered for one write, in bytes: far less than what makes a reader count as slow. */
const MAX_GATHERED = 4_096

/** How much may wait before audio is dropped, in bytes: two seconds of 24 kHz. */
const MAX_AUDIO_WAITING = 96_000

/** The other end of one socket: what it says, parsed and within limits, and what it is told, no faster than it reads. */
export class SocketPeer implements HeartbeatPeer {
  readonly #socket: ClosingSocket
  readonly #stream: Duplex
  readonly #limits: SocketLimits
  readonly #events: SocketEvents
  readonly #heartbeats: Heartbeats
  #frames: TokenBucket | undefined
  #audio: TokenBucket | undefined
  #corked = false
  #first = true
  #unread = 0
  #droppedAudio = 0
  #state: 'open' | 'closing' = 'open'

  constructor(
    {
      socket,
      stream,
      heartbeats,
    }: { socket: ClosingSocket; stream: Duplex; heartbeats: Heartbeats },
    limits: SocketLimits,
    events: SocketEvents,
  ) {
    this.#socket = socket
    this.#stream = stream
    this.#limits = limits
    this.#events = events
    this.#heartbeats = heartbeats
    heartbeats.add(this)
    this.#listen()
  }

  /** Resolves when the connection is gone. */
  async closed(): Promise<void> {
    if (this.#socket.readyState === this.#socket.CLOSED) return
    await new Promise<void>((resolve) => this.#socket.once('close', () => resolve()))
  }

  ping(): void {
    this.#socket.ping()
  }

  onDead(): void {
    this.close('dead-peer')
  }

  /** Pieces of audio that this client was too slow for. */
  get droppedAudio(): number {
    return this.#droppedAudio
  }

  /** Writes a frame of an answer, whose reader waits for the drain after a false. */
  write(frame: string): boolean {
    if (this.#state === 'open') this.#push(frame)
    return !this.#stream.writableNeedDrain
  }

  /** Tells something beside the answers. A client that asks for more and more of it without reading is let go. */
  send(frame: ServerFrame): void {
    this.#sendAll(this.#events.codec.encode(frame))
  }

  /** Sends a piece of audio, or drops it: late audio is of no use. */
  sendAudio(bytes: Uint8Array): boolean {
    if (this.#state !== 'open' || this.#stream.writableLength > MAX_AUDIO_WAITING) {
      this.#droppedAudio += 1
      return false
    }
    this.#push(bytes)
    return true
  }

  /** What is sent in one go of the event loop is one write: for a token, the write costs more than all the rest. */
  #push(data: string | Uint8Array): void {
    if (!this.#corked) {
      this.#corked = true
      this.#stream.cork()
      setImmediate(() => this.#flush())
    }
    this.#socket.send(data)
    if (this.#stream.writableLength > MAX_GATHERED) this.#flush()
  }

  #flush(): void {
    if (!this.#corked) return
    this.#corked = false
    this.#stream.uncork()
  }

  /** Says that a frame cannot be used, by its name (WS12). */
  refuse(fault: FrameFault): void {
    this.#sendAll(this.#events.codec.refuse(fault))
  }

  close(reason: CloseReason): void {
    if (this.#state === 'closing') return
    this.#handleClose()
    this.#socket.close(CLOSE_CODES[reason].code, reason)
    // A flood is not read to its end; what still waits in the kernel goes with the connection.
    if (reason === 'too-fast') this.#socket.pause()
    // Nothing gets through to these, not even the close.
    if (reason === 'dead-peer' || reason === 'too-slow') this.#socket.terminate()
  }

  #sendAll(texts: readonly string[]): void {
    for (const text of texts) {
      if (this.write(text)) continue
      this.#unread += text.length
      if (this.#unread > MAX_UNREAD) this.close('too-slow')
    }
  }

  #listen(): void {
    this.#socket.on('message', (data, isBinary) => this.#receive(data, isBinary))
    this.#socket.on('pong', () => this.#heartbeats.beat(this))
    this.#socket.on('ping', () => this.#admit(1))
    // What is wrong with the connection or its bytes is answered by a close code; the close follows.
    this.#socket.on('error', ignoreError)
    // The first comes with a client's goodbye, the second alone when the connection broke.
    const leave = (): void => this.#handleClose()
    this.#socket.onClosing = leave
    this.#socket.on('close', leave)
    this.#stream.on('drain', () => {
      // What waited was taken, so somebody is there: pings wait in the same line.
      this.#heartbeats.beat(this)
      this.#unread = 0
      this.#events.onDrain()
    })
  }

  #handleClose(): void {
    if (this.#state === 'closing') return
    this.#state = 'closing'
    this.#heartbeats.remove(this)
    this.#events.onClose()
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#heartbeats.beat(this)
    // One buffer, and not its fragments: `ws` joins them unless told otherwise.
    const bytes = data as Buffer
    if (!this.#admit(1 + Math.floor(bytes.byteLength / COSTLY_BYTES))) return
    if (isBinary) {
      if (this.#admitAudio('binary', bytes.byteLength)) this.#events.onAudio(bytes)
      return
    }
    if (this.#first) this.#events.onFirst(bytes)
    this.#first = false
    const frame = this.#events.codec.read(bytes)
    if ('fault' in frame) return this.#refuseWithPenalty(frame.fault)
    const audioBytes = audioBytesIn(frame)
    const name = frame.type === 'bidi' ? frame.event : frame.type
    if (audioBytes === undefined || this.#admitAudio(name, audioBytes)) this.#events.onFrame(frame)
  }

  /** WS15: a client that sends faster than anybody could use it is let go. */
  #admit(cost: number): boolean {
    if (this.#state !== 'open') return false
    this.#frames ??= new TokenBucket(this.#limits.maxFramesPerSecond)
    const admitted = this.#frames.take(cost)
    if (!admitted) this.close('too-fast')
    return admitted
  }

  #admitAudio(frame: string, size: number): boolean {
    const { maxAudioFrameBytes, maxAudioBytesPerSecond } = this.#limits
    const fault = { frame, requestId: undefined }
    if (size > maxAudioFrameBytes) {
      const message = `A piece of audio is larger than ${maxAudioFrameBytes} bytes. Send smaller ones.`
      this.#refuseWithPenalty({ ...fault, code: 'too-large', message })
      return false
    }
    this.#audio ??= new TokenBucket(maxAudioBytesPerSecond)
    if (this.#audio.take(size)) return true
    const { code, message } = new ProtocolError('too-fast')
    this.#refuseWithPenalty({ ...fault, code, message })
    return false
  }

  #refuseWithPenalty(fault: FrameFault): void {
    if (this.#admit(FAULT_COST)) this.refuse(fault)
  }
}

/** One for all sockets. */
function ignoreError(): void {}

/**
 * A socket that tells when its closing begins, from whichever side. `ws` tells only when the connection is gone: until then, who said
 * goodbye and is slow to hang up would count as somebody who reads.
 */
export class ClosingSocket extends WebSocket {
  onClosing: (() => void) | undefined

  // `ws` answers a client's close by this, too.
  override close(code?: number, data?: string | Buffer): void {
    super.close(code, data)
    this.onClosing?.()
  }
}

/** What one client may send over a socket. */
export interface SocketLimits {
  /** Frames of a client per second, on the average over two seconds. Default 100: voice in pieces of 20 ms is 50. */
  readonly maxFramesPerSecond: number
  /** Bytes of one piece of audio. Default 64 KiB. */
  readonly maxAudioFrameBytes: number
  /** Bytes of audio per second. Default 128,000: four times the 16 kHz that a microphone gives. */
  readonly maxAudioBytesPerSecond: number
  /** Silence after which a client is asked whether it is there, in ms. Default 15,000. */
  readonly keepAliveMs: number
}

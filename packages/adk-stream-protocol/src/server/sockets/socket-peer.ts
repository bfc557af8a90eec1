import type { SocketLimits } from '../settings/limits.ts'
import type { Duplex } from 'node:stream'

import type { RawData } from 'ws'
import { WebSocket } from 'ws'

import type { FrameFault } from '../../protocol/client-frame.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { CloseReason, ServerFrame } from '../../protocol/server-frame.ts'
import { CLOSE_CODES } from '../../protocol/server-frame.ts'
import type { FrameCodec, IncomingFrame } from './frame-codec.ts'
import { audioBytesIn, nameOf } from './frame-codec.ts'

/** Receives the events of a socket. None of the methods may throw. */
export interface SocketEvents {
  /** Reads and writes the frames of this client. */
  readonly codec: FrameCodec
  /** Called with the first frame, before it is read. */
  onFirst(bytes: Uint8Array): void
  onFrame(frame: IncomingFrame): void
  /** Called with a binary frame. */
  onAudio(bytes: Uint8Array): void
  /** Called when the socket can take more data. */
  onDrain(): void
  /** Called once when the socket starts to close. The connection may stay open for a while. */
  onClose(): void
  /** Called when the connection is closed. */
  onClosed?(): void
}

/** A frame of this size counts as two, because parsing a large frame is expensive. */
const COSTLY_BYTES = 131_072

/** How many frames an invalid frame counts as. */
const FAULT_COST = 10

/** How many characters may wait for a client that does not read, not counting turns. */
const MAX_UNREAD = 262_144

/** How many bytes are batched into one write. This is far below the size at which a reader counts as slow. */
const MAX_GATHERED = 4_096

/** How many bytes may wait before audio is dropped: two seconds at 24 kHz. */
const MAX_AUDIO_WAITING = 96_000

/** Parses the frames of one client within its limits, and writes to it no faster than it reads. */
export class SocketPeer implements HeartbeatPeer {
  readonly #socket: ClosingSocket
  readonly #stream: Duplex
  readonly #limits: SocketLimits
  readonly #events: SocketEvents
  readonly #heartbeats: Heartbeats
  #takeFrames: TakeTokens | undefined
  #takeAudio: TakeTokens | undefined
  #corked = false
  #first = true
  #unread = 0
  #droppedAudio = 0
  #state: 'open' | 'closing' = 'open'
  #closed: Promise<void> | undefined

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

  /** Resolves when the connection is closed. */
  async closed(): Promise<void> {
    if (this.#socket.readyState === this.#socket.CLOSED) return
    // A bridge that drains asks again and again. Each listener would stay until a client whose network is gone counts as closed.
    this.#closed ??= new Promise((resolve) => this.#socket.once('close', () => resolve()))
    await this.#closed
  }

  ping(): void {
    this.#socket.ping()
  }

  onDead(): void {
    this.close('dead-peer')
  }

  /** The number of audio frames that were dropped because the client was too slow. */
  get droppedAudio(): number {
    return this.#droppedAudio
  }

  /** Writes a frame of a turn. If it returns false, the reader must wait for `onDrain`. */
  write(frame: string): boolean {
    if (this.#state === 'open') this.#push(frame)
    return !this.#stream.writableNeedDrain
  }

  /** Sends a frame that belongs to no turn. Closes the socket if too many of them wait for the client. */
  send(frame: ServerFrame): void {
    this.#sendAll(this.#events.codec.encode(frame))
  }

  /** Sends audio, or drops it if the client is too slow: late audio is useless. Returns false if it was dropped. */
  sendAudio(bytes: Uint8Array): boolean {
    if (this.#state !== 'open' || this.#stream.writableLength > MAX_AUDIO_WAITING) {
      this.#droppedAudio += 1
      return false
    }
    this.#push(bytes)
    return true
  }

  /** Batches all frames of one event loop iteration into one write, because the write is the most expensive step of a token. */
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

  /** Refuses a frame (WS12). */
  refuse(fault: FrameFault): void {
    this.#sendAll(this.#events.codec.refuse(fault))
  }

  close(reason: CloseReason): void {
    if (this.#state === 'closing') return
    this.handleClosing()
    this.#socket.close(CLOSE_CODES[reason].code, reason)
    // Do not read the rest of a flood.
    if (reason === 'too-fast') this.#socket.pause()
    // A close frame would not get through.
    if (reason === 'dead-peer' || reason === 'too-slow') this.#socket.terminate()
  }

  #sendAll(texts: readonly string[]): void {
    for (const text of texts) {
      if (this.write(text)) continue
      this.#unread += text.length
      if (this.#unread > MAX_UNREAD) this.close('too-slow')
    }
  }

  // The listeners are the same functions for all sockets: thousands of idle sockets would keep thousands of closures.
  #listen(): void {
    this.#socket.peer = this
    this.#socket.on('message', onMessage)
    this.#socket.on('pong', onPong)
    this.#socket.on('ping', onPing)
    // `ws` sends a close code for connection and protocol errors; a `close` event follows.
    this.#socket.on('error', ignoreError)
    this.#socket.on('close', onClosed)
    this.#stream.on('drain', () => {
      // The client has read data, so it is alive. Pings wait behind the same data.
      this.#heartbeats.beat(this)
      this.#unread = 0
      this.#events.onDrain()
    })
  }

  handlePong(): void {
    this.#heartbeats.beat(this)
  }

  handlePing(): void {
    this.#admit(1)
  }

  handleClosed(): void {
    // If the connection breaks, there was no close handshake before.
    this.handleClosing()
    this.#events.onClosed?.()
  }

  /** Called when either side starts to close the socket. */
  handleClosing(): void {
    if (this.#state === 'closing') return
    this.#state = 'closing'
    this.#heartbeats.remove(this)
    this.#events.onClose()
  }

  receive(data: RawData, isBinary: boolean): void {
    this.#heartbeats.beat(this)
    // `ws` joins fragments into one buffer by default.
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
    if (audioBytes === undefined || this.#admitAudio(nameOf(frame), audioBytes))
      this.#events.onFrame(frame)
  }

  /** WS15: closes the socket of a client that sends too fast. */
  #admit(cost: number): boolean {
    if (this.#state !== 'open') return false
    this.#takeFrames ??= createTokenBucket(this.#limits.maxFramesPerSecond)
    const admitted = this.#takeFrames(cost)
    if (!admitted) this.close('too-fast')
    return admitted
  }

  #admitAudio(frame: string, size: number): boolean {
    const { maxAudioFrameBytes, maxAudioBytesPerSecond } = this.#limits
    const fault = { frame, requestId: undefined }
    if (size > maxAudioFrameBytes) {
      const message = `An audio frame is larger than ${maxAudioFrameBytes} bytes. Send smaller frames.`
      this.#refuseWithPenalty({ ...fault, code: 'too-large', message })
      return false
    }
    this.#takeAudio ??= createTokenBucket(maxAudioBytesPerSecond)
    if (this.#takeAudio(size)) return true
    const { code, message } = new ProtocolError('too-fast')
    this.#refuseWithPenalty({ ...fault, code, message })
    return false
  }

  #refuseWithPenalty(fault: FrameFault): void {
    if (this.#admit(FAULT_COST)) this.refuse(fault)
  }
}

/** Shared by all sockets, to save memory. */
function ignoreError(): void {}

/**
 * A socket that tells its peer when either side starts to close it. `ws` reports only the end of the connection; until then, a client
 * that is slow to disconnect would count as a reader.
 */
export class ClosingSocket extends WebSocket {
  peer: SocketPeer | undefined

  // `ws` also calls this method when the client closes the socket.
  override close(code?: number, data?: string | Buffer): void {
    super.close(code, data)
    this.peer?.handleClosing()
  }
}

function onMessage(this: WebSocket, data: RawData, isBinary: boolean): void {
  peerOf(this).receive(data, isBinary)
}

function onPong(this: WebSocket): void {
  peerOf(this).handlePong()
}

function onPing(this: WebSocket): void {
  peerOf(this).handlePing()
}

function onClosed(this: WebSocket): void {
  peerOf(this).handleClosed()
}

function peerOf(socket: WebSocket): SocketPeer {
  if (socket instanceof ClosingSocket && socket.peer) return socket.peer
  throw new TypeError('This socket has no peer.')
}

/**
 * Returns a function that limits a rate to an average number per second, with bursts of two seconds. It takes tokens, or returns false
 * and takes none if there are not enough.
 */
export function createTokenBucket(
  perSecond: number,
  now: () => number = () => performance.now(),
): TakeTokens {
  const capacity = perSecond * BURST_SECONDS
  let tokens = capacity
  let filledAt = now()
  return (count) => {
    const time = now()
    tokens = Math.min(capacity, tokens + ((time - filledAt) / 1_000) * perSecond)
    filledAt = time
    if (tokens < count) return false
    tokens -= count
    return true
  }
}

type TakeTokens = (count: number) => boolean

const BURST_SECONDS = 2

/** How many pings in a row a peer may miss before it counts as dead. */
const MAX_MISSES = 2

export interface HeartbeatPeer {
  ping(): void
  onDead(): void
}

/**
 * Detects dead connections, for example after a phone went to sleep. All peers share one timer, which checks each peer once per
 * interval, spread over the interval.
 */
export class Heartbeats {
  readonly #intervalMs: number
  /** The missed pings of each peer, in the order of their next check. */
  readonly #misses = new Map<HeartbeatPeer, { misses: number; nextAt: number }>()
  #timer: NodeJS.Timeout | undefined

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** Starts to check a peer. */
  add(peer: HeartbeatPeer): void {
    this.#misses.set(peer, { misses: 0, nextAt: performance.now() + this.#intervalMs })
    this.#schedule()
  }

  /** Records a sign of life of a peer. */
  beat(peer: HeartbeatPeer): void {
    const state = this.#misses.get(peer)
    if (state) state.misses = 0
  }

  remove(peer: HeartbeatPeer): void {
    this.#misses.delete(peer)
    if (this.#misses.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #schedule(): void {
    const [next] = this.#misses.values()
    if (next === undefined || this.#timer !== undefined) return
    const delay = Math.max(0, next.nextAt - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#checkDue()
      this.#schedule()
    }, delay)
  }

  #checkDue(): void {
    const now = performance.now()
    for (const [peer, state] of this.#misses) {
      if (state.nextAt > now) return
      this.#misses.delete(peer)
      if (state.misses >= MAX_MISSES) {
        peer.onDead()
        continue
      }
      state.misses += 1
      state.nextAt = now + this.#intervalMs
      this.#misses.set(peer, state)
      peer.ping()
    }
  }
}

import type { ServerResponse } from 'node:http'

import { SSE_KEEP_ALIVE, sseFrame, sseKeepAlive, ssePositions } from '../../protocol/sse.ts'
import type { ChunkPositions } from '../../turns/chunk-positions.ts'
import type { Sink } from '../../turns/log-reader.ts'

/** Chunks that follow others sooner than this are sent together (TU795). A screen shows a new picture every 16 ms. */
const SEND_INTERVAL_MS = 16

/** How many characters may wait to be sent together. */
const MAX_WAITING = 4_096

/** How a turn is written. */
interface WrittenTurn {
  /** The end of the response. */
  readonly end: string
  /** The positions, if the client asks for them. */
  readonly positions?: ChunkPositions | undefined
}

/**
 * Writes a turn to a node:http response. The write to the socket takes half of the time of a chunk, so chunks in short succession share
 * one.
 */
export class SseResponse implements Sink {
  readonly #response: ServerResponse
  readonly #keepAlive: NodeJS.Timeout
  readonly #written: WrittenTurn
  /** Frames that are not sent yet. */
  #waiting: string
  /** Whether further chunks follow at once. */
  #isHeld = true
  #sentAt = -Infinity
  /** Whether the client has left or has received everything. The end of a format may come after it. */
  #isClosed = false
  #timer: NodeJS.Timeout | undefined

  /** Holds the chunks of the turn so far until `start` is called. */
  constructor(response: ServerResponse, keepAliveMs: number, written: WrittenTurn) {
    this.#response = response
    this.#written = written
    this.#waiting = written.positions ? sseKeepAlive(keepAliveMs) : ''
    this.#keepAlive = setInterval(() => {
      if (!response.writableNeedDrain) response.write(SSE_KEEP_ALIVE)
    }, keepAliveMs)
  }

  /** Sends the head of the response and the chunks so far, with the first chunk of the agent if that follows at once. */
  start(): void {
    this.#isHeld = false
    // After two turns of the event loop, the agent has called its model, and nothing waits for this write.
    setImmediate(() => setImmediate(() => this.#sendFirst()))
  }

  write(json: string, entry?: number): boolean {
    if (this.#isClosed) return true
    this.#waiting += sseFrame(json, this.#written.positions?.next(entry))
    return (this.#isHeld && this.#waiting.length <= MAX_WAITING) || this.#sendInTime()
  }

  hold(): void {
    this.#isHeld = true
  }

  flush(): boolean {
    this.#isHeld = false
    return this.#waiting === '' || this.#sendInTime()
  }

  end(): void {
    if (this.#isClosed) return
    this.close()
    const { end, positions } = this.#written
    this.#response.end(this.#waiting + ssePositions(positions?.ofChat) + end)
    this.#waiting = ''
  }

  abandon(): void {
    this.close()
    this.#response.destroy()
  }

  /** Stops the timers. A slow client keeps the response open, and writing after `end` would be an unhandled error. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#keepAlive)
    clearTimeout(this.#timer)
  }

  /** Sends what waits, or leaves it to the timer. Returns false if the response is full until it drains. */
  #sendInTime(): boolean {
    const waitMs = this.#sentAt + SEND_INTERVAL_MS - performance.now()
    const isFull = this.#waiting.length > MAX_WAITING || this.#response.writableNeedDrain
    if (waitMs <= 0 || isFull) return this.#sendNow()
    this.#timer ??= setTimeout(() => this.#sendNow(), waitMs)
    return true
  }

  #sendNow(): boolean {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sentAt = performance.now()
    return this.#send()
  }

  #sendFirst(): void {
    if (this.#waiting !== '') this.#send()
    // A client that has received everything learns that it is connected.
    else if (!this.#response.writableEnded) this.#response.flushHeaders()
  }

  #send(): boolean {
    const frames = this.#waiting
    this.#waiting = ''
    const hasRoom = this.#response.write(frames)
    // Otherwise node:http sends it after all microtasks. There may be a commit to the database among them.
    this.#response.socket?.uncork()
    return hasRoom
  }
}

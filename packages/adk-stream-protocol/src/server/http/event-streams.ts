import type { ServerResponse } from 'node:http'

import {
  SSE_DONE,
  SSE_HEADERS,
  SSE_KEEP_ALIVE,
  sseFrame,
  sseKeepAlive,
} from '../../protocol/sse.ts'
import type { LogReader, Sink } from '../../turns/log-reader.ts'
import type { ReadFrom } from '../../turns/turn-log.ts'
import type { Turn } from '../../turns/turn.ts'
import type { Dialect } from './dialects.ts'
import { toDialect } from './dialects.ts'

export interface SseOptions {
  /** Additional response headers. */
  readonly headers: Readonly<Record<string, string>>
  readonly keepAliveMs: number
  /** The position from which the client reads. */
  readonly from: ReadFrom
  readonly dialect: Dialect
}

/** Sends a turn as the body of a node:http response. Returns false if the turn is too long to be replayed. */
export function streamToNode(turn: Turn, response: ServerResponse, options: SseOptions): boolean {
  const keepAlive = setInterval(() => {
    if (!response.writableNeedDrain) response.write(SSE_KEEP_ALIVE)
  }, options.keepAliveMs)
  let held: string | undefined
  const sink: Sink = {
    write: (json) => {
      if (held === undefined) return response.write(sseFrame(json))
      held += sseFrame(json)
      return true
    },
    hold: () => {
      held = ''
    },
    flush: () => {
      const frames = held ?? ''
      held = undefined
      return frames === '' || response.write(frames)
    },
    end: () => {
      // A slow client keeps the response open, and writing after `end` would be an unhandled error.
      clearInterval(keepAlive)
      response.end(SSE_DONE)
    },
    abandon: () => response.destroy(),
  }
  response.writeHead(200, { ...SSE_HEADERS, ...options.headers })
  const attachment = turn.attach(toDialect(options.dialect, sink, options.from), options.from)
  response.on('drain', () => attachment?.drained())
  const leave = (): void => {
    clearInterval(keepAlive)
    attachment?.detach('closed')
  }
  response.on('close', leave)
  // If the client disconnected while the turn was prepared, there is no further 'close' event.
  if (response.closed || !attachment) leave()
  return attachment !== undefined
}

/** How many bytes may wait in a stream that its host does not read. */
const HIGH_WATER_BYTES = 65_536

/** Sends a turn as a web `Response`. */
export function streamToWeb(turn: Turn, request: Request, options: SseOptions): Response {
  const encoder = new TextEncoder()
  let attachment: LogReader | undefined
  let keepAlive: NodeJS.Timeout | undefined
  const leave = (): void => {
    clearInterval(keepAlive)
    attachment?.detach('closed')
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const write = (text: string): boolean => {
          controller.enqueue(encoder.encode(text))
          return (controller.desiredSize ?? 0) > 0
        }
        const sink: Sink = {
          write: (json) => write(sseFrame(json)),
          end: () => {
            clearInterval(keepAlive)
            write(SSE_DONE)
            controller.close()
          },
          abandon: () => {
            clearInterval(keepAlive)
            controller.error(new Error('The client is too slow. It can resume the turn.'))
          },
        }
        keepAlive = setInterval(() => {
          if ((controller.desiredSize ?? 0) > 0) write(SSE_KEEP_ALIVE)
        }, options.keepAliveMs)
        attachment = turn.attach(toDialect(options.dialect, sink, options.from), options.from)
      },
      pull: () => attachment?.drained(),
      cancel: leave,
    },
    { highWaterMark: HIGH_WATER_BYTES, size: (chunk) => chunk.byteLength },
  )
  // Some hosts do not cancel the body when the client disconnects. They abort the request instead.
  if (request.signal.aborted) leave()
  else request.signal.addEventListener('abort', leave, { once: true })
  return new Response(body, { headers: { ...SSE_HEADERS, ...options.headers } })
}

/** The client of a feed. The server sends it JSON and may end the feed. */
export interface FeedClient {
  readonly send: (json: string) => void
  readonly end: () => void
}

/** A stream of events that lasts until the client disconnects or the server ends it. Returns a function that unsubscribes. */
export type Feed = (client: FeedClient) => () => void

export interface FeedOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly keepAliveMs: number
}

/** Sends a feed as the body of a node:http response. Disconnects a client that does not read. */
export function feedToNode(feed: Feed, response: ServerResponse, options: FeedOptions): void {
  const write = (text: string): void => {
    if (!response.writableEnded && !response.write(text)) response.destroy()
  }
  const comment = sseKeepAlive(options.keepAliveMs)
  response.writeHead(200, { ...SSE_HEADERS, ...options.headers })
  response.write(comment)
  const keepAlive = startKeepAlive(() => write(comment), options)
  const stop = feed({ send: (json) => write(sseFrame(json)), end: () => response.end() })
  const leave = (): void => {
    clearInterval(keepAlive)
    stop()
  }
  response.on('close', leave)
  if (response.closed) leave()
}

/** Sends a feed as a web `Response`. Disconnects a client that does not read. */
export function feedToWeb(feed: Feed, request: Request, options: FeedOptions): Response {
  const encoder = new TextEncoder()
  const comment = sseKeepAlive(options.keepAliveMs)
  let isOver = false
  let stop: (() => void) | undefined
  let keepAlive: NodeJS.Timeout | undefined
  const leave = (): void => {
    isOver = true
    clearInterval(keepAlive)
    stop?.()
  }
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string): void => {
        if (isOver) return
        controller.enqueue(encoder.encode(text))
        if ((controller.desiredSize ?? 0) > -MAX_WAITING) return
        leave()
        controller.error(new Error('The client does not read.'))
      }
      const end = (): void => {
        if (isOver) return
        leave()
        controller.close()
      }
      write(comment)
      keepAlive = startKeepAlive(() => write(comment), options)
      stop = feed({ send: (json) => write(sseFrame(json)), end })
    },
    cancel: leave,
  })
  if (request.signal.aborted) leave()
  else request.signal.addEventListener('abort', leave, { once: true })
  return new Response(body, { headers: { ...SSE_HEADERS, ...options.headers } })
}

// The timer does not keep the process alive.
function startKeepAlive(send: () => void, { keepAliveMs }: FeedOptions): NodeJS.Timeout {
  return setInterval(send, keepAliveMs).unref()
}

/** The maximum number of events that may wait for a client. */
const MAX_WAITING = 64

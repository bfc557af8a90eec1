import type { ServerResponse } from 'node:http'

import { SSE_HEADERS, sseFrame, sseKeepAlive } from '../../protocol/sse.ts'

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
  const sign = sseKeepAlive(options.keepAliveMs)
  response.writeHead(200, { ...SSE_HEADERS, ...options.headers })
  response.write(sign)
  const keepAlive = heartbeat(() => write(sign), options)
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
  const sign = sseKeepAlive(options.keepAliveMs)
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
      write(sign)
      keepAlive = heartbeat(() => write(sign), options)
      stop = feed({ send: (json) => write(sseFrame(json)), end })
    },
    cancel: leave,
  })
  if (request.signal.aborted) leave()
  else request.signal.addEventListener('abort', leave, { once: true })
  return new Response(body, { headers: { ...SSE_HEADERS, ...options.headers } })
}

// The timer does not keep the process alive.
function heartbeat(sign: () => void, { keepAliveMs }: FeedOptions): NodeJS.Timeout {
  return setInterval(sign, keepAliveMs).unref()
}

/** The maximum number of events that may wait for a client. */
const MAX_WAITING = 64

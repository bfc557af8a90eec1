import type { ServerResponse } from 'node:http'

import { SSE_HEADERS, sseFrame, sseKeepAlive } from '../protocol/sse.ts'

/** Something that goes on until the client leaves. `send` takes JSON; the feed gives the way to stop it. */
export type Feed = (send: (json: string) => void) => () => void

export interface FeedOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly keepAliveMs: number
}

/** Sends a feed as the body of a node:http response. A client that does not read is let go. */
export function feedToNode(feed: Feed, response: ServerResponse, options: FeedOptions): void {
  const write = (text: string): void => {
    if (!response.write(text)) response.destroy()
  }
  const sign = sseKeepAlive(options.keepAliveMs)
  response.writeHead(200, { ...SSE_HEADERS, ...options.headers })
  response.write(sign)
  const stop = feed((json) => write(sseFrame(json)))
  const keepAlive = setInterval(() => write(sign), options.keepAliveMs)
  const leave = (): void => {
    clearInterval(keepAlive)
    stop()
  }
  response.on('close', leave)
  if (response.closed) leave()
}

/** Sends a feed as a web `Response`. A client that does not read is let go. */
export function feedToWeb(feed: Feed, request: Request, options: FeedOptions): Response {
  const encoder = new TextEncoder()
  const sign = sseKeepAlive(options.keepAliveMs)
  let leave: (() => void) | undefined
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string): void => {
        controller.enqueue(encoder.encode(text))
        if ((controller.desiredSize ?? 0) > -MAX_WAITING) return
        leave?.()
        controller.error(new Error('The client does not read.'))
      }
      write(sign)
      const stop = feed((json) => write(sseFrame(json)))
      const keepAlive = setInterval(() => write(sign), options.keepAliveMs)
      leave = () => {
        clearInterval(keepAlive)
        stop()
      }
    },
    cancel: () => leave?.(),
  })
  if (request.signal.aborted) leave?.()
  else request.signal.addEventListener('abort', () => leave?.(), { once: true })
  return new Response(body, { headers: { ...SSE_HEADERS, ...options.headers } })
}

/** How many events may wait for a client. */
const MAX_WAITING = 64

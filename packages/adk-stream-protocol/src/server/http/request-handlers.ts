import type { IncomingMessage, ServerResponse } from 'node:http'

import {
  SSE_HEADERS,
  SSE_KEEP_ALIVE,
  sseFrame,
  ssePositions,
  sseKeepAlive,
} from '../../protocol/sse.ts'
import { ChunkPositions } from '../../turns/chunk-positions.ts'
import type { LogReader, Sink } from '../../turns/log-reader.ts'
import type { Exchange, FeedReply, FileReply, JsonReply, TurnReply } from './exchange.ts'
import { readBody, SECURITY_HEADERS } from './exchange.ts'
import type { HttpRouter } from './http-router.ts'
import { SseResponse } from './sse-response.ts'

interface RequestHandling {
  readonly router: HttpRouter
  /** The interval of the comments that keep a stream open. */
  readonly keepAliveMs: number
}

/** Handles a node:http request, without web streams. */
export async function handleNodeRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { router, keepAliveMs }: RequestHandling,
): Promise<void> {
  const reply = await router.respond(readExchange(request))
  if (reply.type === 'json') writeJson(response, reply)
  else if (reply.type === 'file') writeFile(response, reply)
  else if (reply.type === 'feed') feedToNode(reply, response, keepAliveMs)
  else streamToNode(reply, response, keepAliveMs)
}

/** Handles a web `Request`. */
export async function handleFetchRequest(
  request: Request,
  { router, keepAliveMs }: RequestHandling,
): Promise<Response> {
  const reply = await router.respond({
    method: request.method,
    url: new URL(request.url),
    headers: request.headers,
    readBody: (maxBytes) => readBody(request.body ?? [], maxBytes),
  })
  if (reply.type === 'turn') return streamToWeb(reply, request, keepAliveMs)
  if (reply.type === 'feed') return feedToWeb(reply, request, keepAliveMs)
  const headers = new Headers({ ...SECURITY_HEADERS, ...reply.headers })
  if (reply.type === 'file')
    return new Response(Uint8Array.from(reply.bytes), { status: reply.status, headers })
  const { status, body } = reply
  return body === undefined
    ? new Response(null, { status, headers })
    : Response.json(body, { status, headers })
}

/** Converts a node:http request to an exchange. */
export function readExchange(request: IncomingMessage): Exchange {
  // A server that listens on IPv6 sees IPv4 clients as `::ffff:1.2.3.4`.
  const address = request.socket.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '')
  return {
    ...(address !== undefined && { address }),
    method: request.method ?? 'GET',
    url: readUrl(request),
    headers: readHeaders(request),
    // Keep the request open if the body is refused, so that the error can be sent.
    readBody: (maxBytes) => readBody(request.iterator({ destroyOnReturn: false }), maxBytes),
  }
}

// Only the path matters. A path that is not valid in a URL has no route.
function readUrl(request: IncomingMessage): URL {
  const scheme = 'encrypted' in request.socket ? 'https' : 'http'
  const path = (request.url ?? '/').replace(/^\/+/, '/')
  const url = `${scheme}://localhost${path.startsWith('/') ? path : '/?'}`
  return URL.canParse(url) ? new URL(url) : new URL(`${scheme}://localhost/?`)
}

function readHeaders({ headers }: IncomingMessage): Headers {
  const result = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') result.set(name, value)
  }
  return result
}

function writeFile(response: ServerResponse, { status, headers, bytes }: FileReply): void {
  const length = { 'content-length': String(bytes.byteLength) }
  response.writeHead(status, { ...SECURITY_HEADERS, ...length, ...headers })
  response.end(bytes)
}

function writeJson(response: ServerResponse, { status, headers, body }: JsonReply): void {
  const json = body === undefined ? undefined : JSON.stringify(body)
  response.writeHead(status, {
    ...SECURITY_HEADERS,
    ...(json !== undefined && {
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength(json)),
    }),
    // Otherwise the rest of the refused body would be parsed as the next request.
    ...(status === 413 && { connection: 'close' }),
    ...headers,
  })
  response.end(json)
}

/** Sends a turn as the body of a node:http response. */
function streamToNode(turnReply: TurnReply, response: ServerResponse, keepAliveMs: number): void {
  const { turn, from, format, headers } = turnReply
  const written = { end: format.end, positions: positionsOf(turnReply) }
  const sink = new SseResponse(response, keepAliveMs, written)
  response.writeHead(200, { ...SSE_HEADERS, ...format.headers, ...headers })
  const attachment = turn.attach(format.convert(sink, from), from)
  sink.start()
  response.on('drain', () => attachment?.drained())
  const leave = (): void => {
    sink.close()
    attachment?.detach('closed')
  }
  response.on('close', leave)
  // If the client disconnected while the turn was prepared, there is no further 'close' event.
  if (response.closed || !attachment) leave()
}

/** Returns the positions of a turn for a client that asks for them. */
function positionsOf({ turn, from, format, positions }: TurnReply): ChunkPositions | undefined {
  return positions && format.hasPositions ? new ChunkPositions(turn, from) : undefined
}

/** How many bytes may wait in a stream that its host does not read. */
const HIGH_WATER_BYTES = 65_536

/** Sends a turn as a web `Response`. */
function streamToWeb(turnReply: TurnReply, request: Request, keepAliveMs: number): Response {
  const { turn, from, format, headers } = turnReply
  const positions = positionsOf(turnReply)
  const encoder = new TextEncoder()
  let attachment: LogReader | undefined
  let keepAlive: NodeJS.Timeout | undefined
  let hasLeft = false
  const leave = (): void => {
    hasLeft = true
    clearInterval(keepAlive)
    attachment?.detach('closed')
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const write = (text: string): boolean => {
          // The end of a format may come after the client has left.
          if (hasLeft) return true
          controller.enqueue(encoder.encode(text))
          return (controller.desiredSize ?? 0) > 0
        }
        const sink: Sink = {
          write: (json, entry) => write(sseFrame(json, positions?.next(entry))),
          end: () => {
            clearInterval(keepAlive)
            write(ssePositions(positions?.ofChat) + format.end)
            if (!hasLeft) controller.close()
          },
          abandon: () => {
            clearInterval(keepAlive)
            controller.error(new Error('The client is too slow. It can resume the turn.'))
          },
        }
        keepAlive = setInterval(() => {
          if ((controller.desiredSize ?? 0) > 0) write(SSE_KEEP_ALIVE)
        }, keepAliveMs)
        if (positions) write(sseKeepAlive(keepAliveMs))
        attachment = turn.attach(format.convert(sink, from), from)
      },
      pull: () => attachment?.drained(),
      cancel: leave,
    },
    { highWaterMark: HIGH_WATER_BYTES, size: (chunk) => chunk.byteLength },
  )
  // Some hosts do not cancel the body when the client disconnects. They abort the request instead.
  if (request.signal.aborted) leave()
  else request.signal.addEventListener('abort', leave, { once: true })
  return new Response(body, { headers: { ...SSE_HEADERS, ...format.headers, ...headers } })
}

/** Sends a feed as the body of a node:http response. Disconnects a client that does not read. */
function feedToNode(
  { feed, headers }: FeedReply,
  response: ServerResponse,
  keepAliveMs: number,
): void {
  const write = (text: string): void => {
    if (!response.writableEnded && !response.write(text)) response.destroy()
  }
  const comment = sseKeepAlive(keepAliveMs)
  response.writeHead(200, { ...SSE_HEADERS, ...headers })
  response.write(comment)
  const keepAlive = startKeepAlive(() => write(comment), keepAliveMs)
  const stop = feed({ send: (json) => write(sseFrame(json)), end: () => response.end() })
  const leave = (): void => {
    clearInterval(keepAlive)
    stop()
  }
  response.on('close', leave)
  if (response.closed) leave()
}

/** Sends a feed as a web `Response`. Disconnects a client that does not read. */
function feedToWeb({ feed, headers }: FeedReply, request: Request, keepAliveMs: number): Response {
  const encoder = new TextEncoder()
  const comment = sseKeepAlive(keepAliveMs)
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
      keepAlive = startKeepAlive(() => write(comment), keepAliveMs)
      stop = feed({ send: (json) => write(sseFrame(json)), end })
    },
    cancel: leave,
  })
  if (request.signal.aborted) leave()
  else request.signal.addEventListener('abort', leave, { once: true })
  return new Response(body, { headers: { ...SSE_HEADERS, ...headers } })
}

// The timer does not keep the process alive.
function startKeepAlive(send: () => void, keepAliveMs: number): NodeJS.Timeout {
  return setInterval(send, keepAliveMs).unref()
}

/** The maximum number of events that may wait for a client. */
const MAX_WAITING = 64

import type { IncomingMessage, ServerResponse } from 'node:http'

import { feedToNode, feedToWeb, streamToNode, streamToWeb } from './event-streams.ts'
import type { Exchange, FileReply, Reply } from './exchange.ts'
import { readBody, SECURITY_HEADERS } from './exchange.ts'
import type { HttpRouter } from './http-router.ts'

/** Handles a node:http request, without web streams. */
export async function handleNodeRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { router, keepAliveMs }: { router: HttpRouter; keepAliveMs: number },
): Promise<void> {
  const reply = await router.respond(readExchange(request))
  if (reply.type === 'json') writeJson(response, reply)
  else if (reply.type === 'file') writeFile(response, reply)
  else if (reply.type === 'feed') feedToNode(reply.feed, response, { keepAliveMs, ...reply })
  else streamToNode(reply.turn, response, { keepAliveMs, ...reply })
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

function writeJson(
  response: ServerResponse,
  { status, headers, body }: Extract<Reply, { type: 'json' }>,
): void {
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

/** Handles a web `Request`. */
export async function handleFetchRequest(
  request: Request,
  router: HttpRouter,
  { keepAliveMs }: { keepAliveMs: number },
): Promise<Response> {
  const reply = await router.respond({
    method: request.method,
    url: new URL(request.url),
    headers: request.headers,
    readBody: (maxBytes) => readBody(request.body ?? [], maxBytes),
  })
  if (reply.type === 'turn') return streamToWeb(reply.turn, request, { keepAliveMs, ...reply })
  if (reply.type === 'feed') return feedToWeb(reply.feed, request, { keepAliveMs, ...reply })
  const headers = new Headers({ ...SECURITY_HEADERS, ...reply.headers })
  if (reply.type === 'file')
    return new Response(Uint8Array.from(reply.bytes), { status: reply.status, headers })
  const { status, body } = reply
  return body === undefined
    ? new Response(null, { status, headers })
    : Response.json(body, { status, headers })
}

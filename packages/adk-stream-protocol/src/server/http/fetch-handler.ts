import { readBody, SECURITY_HEADERS } from './exchange.ts'
import { feedToWeb } from './feed-stream.ts'
import { streamToWeb } from './turn-stream.ts'
import type { HttpRouter } from './http-router.ts'

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

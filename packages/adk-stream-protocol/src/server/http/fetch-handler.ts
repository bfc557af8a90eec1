import { readBody, SECURITY_HEADERS } from './exchange.ts'
import { feedToWeb } from './feed-stream.ts'
import { streamToWeb } from './turn-stream.ts'
import type { FrontDoor } from './http-router.ts'

/** Answers a web `Request`. */
export async function answerFetch(
  request: Request,
  door: FrontDoor,
  { keepAliveMs }: { keepAliveMs: number },
): Promise<Response> {
  const answer = await door.respond({
    method: request.method,
    url: new URL(request.url),
    headers: request.headers,
    readBody: (maxBytes) => readBody(request.body ?? [], maxBytes),
  })
  if (answer.type === 'turn') return streamToWeb(answer.turn, request, { keepAliveMs, ...answer })
  if (answer.type === 'feed') return feedToWeb(answer.feed, request, { keepAliveMs, ...answer })
  const headers = new Headers({ ...SECURITY_HEADERS, ...answer.headers })
  if (answer.type === 'file')
    return new Response(Uint8Array.from(answer.bytes), { status: answer.status, headers })
  const { status, body } = answer
  return body === undefined
    ? new Response(null, { status, headers })
    : Response.json(body, { status, headers })
}

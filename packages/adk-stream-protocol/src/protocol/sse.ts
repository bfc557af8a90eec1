/**
 * The headers of a UI message stream, as the AI SDK's own server sends them; but for `connection`, which is between the host and
 * its client: proxies that speak HTTP/1.0 wait for the close that they asked for.
 */
export const SSE_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-vercel-ai-ui-message-stream': 'v1',
  // Proxies such as nginx hold a response back until a buffer is full unless told otherwise.
  'x-accel-buffering': 'no',
} as const

/** One JSON text as an SSE event. JSON never holds a raw line break, so one `data:` line is enough (SS2). */
export function sseFrame(json: string): string {
  return `data: ${json}\n\n`
}

/** The end mark that AI SDK servers send; clients end at the end of the body. */
export const SSE_DONE = 'data: [DONE]\n\n'

/** A comment that keeps proxies from closing a quiet stream; clients ignore it. */
export const SSE_KEEP_ALIVE = ': keep-alive\n\n'

/** The same of a feed, which says how often it comes: who hears nothing for much longer has lost the feed (EV5). */
export function sseKeepAlive(everyMs: number): string {
  return `: keep-alive ${everyMs}\n\n`
}

/** How often a feed gives a sign, in ms, if this is where it says so. */
export function readKeepAlive(block: string): number | undefined {
  const told = /^: keep-alive (\d{1,9})$/.exec(block)?.[1]
  return told === undefined ? undefined : Number(told)
}

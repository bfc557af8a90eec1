/** The header with which the AI SDK's server marks a UI message stream. */
export const UI_STREAM_HEADERS = { 'x-vercel-ai-ui-message-stream': 'v1' } as const

/**
 * The headers of a stream of events. `connection` is left out, because it is a matter between the host and its client: HTTP/1.0 proxies
 * wait for the close that they requested.
 */
export const SSE_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  // Proxies such as nginx buffer responses without this header.
  'x-accel-buffering': 'no',
} as const

/** The header of a resumed stream with the id of its message, which may have no chunk yet (CL1951). */
export const MESSAGE_HEADER = 'adk-message'

/** Returns JSON as an SSE event. JSON contains no raw line breaks, so one `data:` line is enough (SS2). */
export function sseFrame(json: string, id?: string): string {
  return id === undefined ? `data: ${json}\n\n` : `id: ${id}\ndata: ${json}\n\n`
}

/** Returns the event at the end of a stream with the positions of the chat, if they are given (PO4). */
export function ssePositions(positions?: ChatPositions): string {
  if (!positions) return ''
  const { before, after } = positions
  return `event: position\n${sseFrame(JSON.stringify({ before, after }))}`
}

/** The positions of a chat before and after a turn. */
export interface ChatPositions {
  readonly before: string
  readonly after: string
}

/** The end marker that AI SDK servers send. Clients rely on the end of the body instead. */
export const SSE_DONE = 'data: [DONE]\n\n'

/** A comment that keeps proxies from closing an idle stream. Clients ignore it. */
export const SSE_KEEP_ALIVE = ': keep-alive\n\n'

/**
 * Returns the keep-alive comment of a feed, or the first one of a turn, with its interval. A client that receives nothing for much longer
 * has lost the connection (EV5, SS3).
 */
export function sseKeepAlive(everyMs: number): string {
  return `: keep-alive ${everyMs}\n\n`
}

/** Returns the interval in ms from a keep-alive comment. Returns undefined for any other block. */
export function readKeepAlive(block: string): number | undefined {
  const interval = /^: keep-alive (\d{1,9})$/.exec(block)?.[1]
  return interval === undefined ? undefined : Number(interval)
}

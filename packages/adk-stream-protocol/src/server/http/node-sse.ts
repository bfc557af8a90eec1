import type { ServerResponse } from 'node:http'

import { SSE_DONE, SSE_HEADERS, SSE_KEEP_ALIVE, sseFrame } from '../../protocol/sse.ts'
import type { Sink } from '../../turns/attachment.ts'
import type { Turn } from '../../turns/turn.ts'
import type { ReadFrom } from '../../turns/turn-log.ts'
import type { Dialect } from './dialects.ts'
import { toDialect } from './dialects.ts'

export interface SseOptions {
  /** Headers beside those of the stream. */
  readonly headers: Readonly<Record<string, string>>
  readonly keepAliveMs: number
  /** Where the client reads from. */
  readonly from: ReadFrom
  readonly dialect: Dialect
}

/** Sends a turn as the body of a node:http response. False when the turn is too long to be replayed. */
export function streamToNode(turn: Turn, response: ServerResponse, options: SseOptions): boolean {
  const keepAlive = setInterval(() => {
    if (!response.writableNeedDrain) response.write(SSE_KEEP_ALIVE)
  }, options.keepAliveMs)
  const sink: Sink = {
    write: (json) => response.write(sseFrame(json)),
    end: () => {
      // A client that takes its time keeps the response open; a comment after its end would be an error that nobody handles.
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
  // The client may have left while the turn was being prepared; then there is no further 'close'.
  if (response.closed || !attachment) leave()
  return attachment !== undefined
}

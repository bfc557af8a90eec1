import { SSE_DONE, UI_STREAM_HEADERS } from '../../protocol/sse.ts'
import type { Sink } from '../../turns/log-reader.ts'
import type { ReadFrom } from '../../turns/turn-log.ts'

/** How a turn is written for a client. */
export interface TurnFormat {
  /** Whether a client can ask for positions, after which it continues to read. */
  readonly hasPositions: boolean
  /** The headers of an SSE response, besides those of every stream. */
  readonly headers: Readonly<Record<string, string>>
  /** The end of an SSE response. */
  readonly end: string
  /** Returns a sink that converts the chunks of a turn. */
  readonly convert: (sink: Sink, from: ReadFrom) => Sink
}

/** The AI SDK's UI message stream: the chunks as they are in the log. */
export const UI_FORMAT: TurnFormat = {
  hasPositions: true,
  headers: UI_STREAM_HEADERS,
  end: SSE_DONE,
  convert: (sink) => sink,
}

import type { Chunk } from '../../protocol/chunk.ts'
import type { TurnError } from '../../protocol/message.ts'
import { AdkError } from '../adk-error.ts'
import type { AdkChunkStream } from '../adk-ui-message.ts'
import type { ChatObserver, StreamSource } from './response-channel.ts'

interface StreamOptions {
  /** Returns the observer of the chat that reads the stream, if the chat is attached. */
  readonly observer: () => ChatObserver | undefined
  readonly onCancel: () => void | Promise<void>
  readonly source: StreamSource
}

/**
 * Turns chunks into the stream that a chat reads. The chat gets a chunk when it has processed the previous one: a stream without a buffer
 * is pulled no earlier.
 */
export function toChunkStream(
  chunks: AsyncIterator<Chunk, void>,
  { observer, onCancel, source }: StreamOptions,
): AdkChunkStream {
  let reported: TurnError | undefined
  const pull = async (controller: ReadableStreamDefaultController<Chunk>): Promise<void> => {
    const next = await chunks.next().catch((error: unknown) => {
      observer()?.onStreamEnded()
      throw error
    })
    if (next.done === true) {
      controller.close()
      observer()?.onStreamEnded()
      return
    }
    const chunk = next.value
    if (chunk.type === 'error') {
      const { code = 'internal', retryAfterSeconds } = reported ?? {}
      controller.error(new AdkError(code, chunk.errorText, retryAfterSeconds))
      observer()?.onStreamEnded()
      return
    }
    // The metadata has the code of an error. The `error` chunk of the AI SDK, which follows it, has none.
    if (chunk.type === 'message-metadata') reported = chunk.messageMetadata.error
    const pending = observer()?.onChunk(chunk, source)
    if (pending) await pending
    controller.enqueue(chunk)
  }
  return new ReadableStream<Chunk>({ pull, cancel: onCancel }, { highWaterMark: 0 })
}

/** Returns a stream that has ended. */
export function emptyStream(): AdkChunkStream {
  return new ReadableStream({ start: (controller) => controller.close() })
}

/** Reads the chunks of a stream. Streams are not async iterable in every browser. */
export async function* readChunks(stream: AdkChunkStream): AsyncGenerator<Chunk, void> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      // The streams of the transports hold the bridge's chunks.
      yield value as Chunk
    }
  } finally {
    // An error of a stream that is not read any more is of no use.
    await reader.cancel().catch(() => undefined)
  }
}

import type { Chunk } from '../../protocol/chunk.ts'
import type { AdkChunkStream } from '../adk-ui-message.ts'

/** The chunks of a stream; not every browser has streams that are iterable. */
export async function* readChunks(stream: AdkChunkStream): AsyncGenerator<Chunk, void> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      // The transports make streams of the bridge's chunks.
      yield value as Chunk
    }
  } finally {
    // Who reads no further lets the stream go; what it says to that is of no use.
    await reader.cancel().catch(() => undefined)
  }
}

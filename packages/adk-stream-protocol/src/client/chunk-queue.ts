import type { Chunk } from '../protocol/chunk.ts'
import type { AdkChunkStream } from './adk-ui-message.ts'
import { ChunkSpool } from './chunk-spool.ts'

/** What is done before a reader gets a chunk. */
export type BeforeChunk = (chunk: Chunk) => void | Promise<void>

/**
 * The chunks of one answer on their way to a chat. A chunk is handed over when the one before it has been worked in: that is when
 * a stream without room of its own is asked for more.
 */
export class ChunkQueue {
  readonly stream: AdkChunkStream
  readonly #spool = new ChunkSpool()
  #failure: { readonly error: unknown } | undefined

  constructor(before: BeforeChunk, onCancel: () => void = () => undefined) {
    const chunks = this.#spool[Symbol.asyncIterator]()
    const pull = async (controller: ReadableStreamDefaultController<Chunk>): Promise<void> => {
      const { value } = await chunks.next()
      if (value) {
        await before(value)
        controller.enqueue(value)
      } else if (this.#failure) controller.error(this.#failure.error)
      else controller.close()
    }
    // The protocol's chunks are a profile of the AI SDK's (CH1).
    this.stream = new ReadableStream<Chunk>(
      { pull, cancel: onCancel },
      { highWaterMark: 0 },
    ) as unknown as AdkChunkStream
  }

  push(chunk: Chunk): void {
    this.#spool.push(chunk)
  }

  /** Ends the stream after what it holds. */
  close(): void {
    this.#spool.close()
  }

  /** Ends the stream with an error after what it holds. */
  fail(error: unknown): void {
    this.#failure ??= { error }
    this.#spool.close()
  }
}

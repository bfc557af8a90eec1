import type { Chunk } from '../protocol/chunk.ts'

/** Chunks that come from one side and are read on the other, one after the other. */
export class ChunkSpool implements AsyncIterable<Chunk> {
  readonly #chunks: Chunk[] = []
  #closed = false
  #wake: () => void = () => undefined

  push(chunk: Chunk): void {
    this.#chunks.push(chunk)
    this.#wake()
  }

  close(): void {
    this.#closed = true
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk> {
    for (;;) {
      const chunk = this.#chunks.shift()
      if (chunk) yield chunk
      else if (this.#closed) return
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }
}

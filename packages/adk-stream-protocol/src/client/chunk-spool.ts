import type { Chunk } from '../protocol/chunk.ts'

/** Chunks that come from one side and are read on the other, one after the other. */
export class ChunkSpool implements AsyncIterable<Chunk> {
  readonly #chunks: Chunk[] = []
  #ending: { readonly error?: unknown } | undefined
  #wake: () => void = () => undefined

  push(chunk: Chunk): void {
    this.#chunks.push(chunk)
    this.#wake()
  }

  close(): void {
    this.#end({})
  }

  /** Lets the reader fail when it has read what there is. */
  fail(error: unknown): void {
    this.#end({ error })
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void> {
    for (;;) {
      const chunk = this.#chunks.shift()
      if (chunk) yield chunk
      else if (this.#ending && 'error' in this.#ending) throw this.#ending.error
      else if (this.#ending) return
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }

  #end(ending: { readonly error?: unknown }): void {
    this.#ending ??= ending
    this.#wake()
  }
}

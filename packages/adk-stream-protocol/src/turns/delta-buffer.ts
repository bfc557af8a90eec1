import type { DeltaChunk } from '../protocol/chunk.ts'
import { deltaHead } from '../protocol/chunk.ts'

/** The number of deltas that are joined into one string. */
const BLOCK_DELTAS = 64

/** The longest delta for a reader that catches up. A limit lets its backpressure take effect in time. */
const MAX_CATCH_UP = 16_384

/**
 * All deltas of one text part. They are stored as text in blocks, and not as chunks: a long reply costs its characters, and not an
 * object and a hundred bytes of JSON per token.
 */
export class DeltaBuffer {
  readonly #type: DeltaChunk['type']
  readonly #id: string
  readonly #head: string
  readonly #blocks: { readonly start: number; readonly text: string }[] = []
  #joined = 0
  #recent: string[] = []
  #length = 0

  constructor(type: DeltaChunk['type'], id: string) {
    this.#type = type
    this.#id = id
    this.#head = deltaHead(type, id)
  }

  get length(): number {
    return this.#length
  }

  /** Adds a delta. Returns the JSON of its chunk. */
  add(delta: string): string {
    this.#recent.push(delta)
    this.#length += delta.length
    if (this.#recent.length === BLOCK_DELTAS) this.#join()
    return this.#frame(delta)
  }

  belongsTo({ type, id }: DeltaChunk): boolean {
    return this.#type === type && this.#id === id
  }

  /** Returns the JSON of one chunk with the text from `offset`, and the offset after it. */
  frameFrom(offset: number): { readonly json: string; readonly end: number } {
    const text = this.#textFrom(offset, MAX_CATCH_UP)
    return { json: this.#frame(text), end: offset + text.length }
  }

  get text(): string {
    return this.#textFrom(0, this.#length)
  }

  #frame(delta: string): string {
    return `${this.#head}${JSON.stringify(delta)}}`
  }

  #join(): void {
    const text = this.#recent.join('')
    this.#blocks.push({ start: this.#joined, text })
    this.#joined += text.length
    this.#recent = []
  }

  #textFrom(offset: number, most: number): string {
    if (this.#recent.length > 0) this.#join()
    // Readers catch up near the end, so the search starts there.
    let index = this.#blocks.length - 1
    while (index > 0 && (this.#blocks[index]?.start ?? 0) > offset) index -= 1
    let text = ''
    for (; index < this.#blocks.length && text.length < most; index += 1) {
      const block = this.#blocks[index]
      if (block) text += block.text.slice(Math.max(0, offset - block.start))
    }
    return truncate(text, most)
  }
}

/** Truncates a text without splitting a surrogate pair. */
function truncate(text: string, most: number): string {
  if (text.length <= most) return text
  const last = text.charCodeAt(most - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most)
}

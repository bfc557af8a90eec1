import type { DeltaChunk } from '../protocol/chunk.ts'
import { deltaHead } from '../protocol/chunk.ts'

/** How many deltas are joined into one string. */
const BLOCK_DELTAS = 64

/** How much text a reader that catches up gets in one delta, so that its backpressure is seen in time. */
const MAX_CATCH_UP = 16_384

/**
 * All deltas of one text part. They are kept as text, not as frames: joined in blocks, a long answer costs its characters, not
 * an object and a hundred bytes of framing per token.
 */
export class DeltaRun {
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

  /** Takes in a delta; the JSON of its chunk comes back. */
  add(delta: string): string {
    this.#recent.push(delta)
    this.#length += delta.length
    if (this.#recent.length === BLOCK_DELTAS) this.#join()
    return this.#frame(delta)
  }

  belongsTo({ type, id }: DeltaChunk): boolean {
    return this.#type === type && this.#id === id
  }

  /** The JSON of one chunk with the text from `offset` on, and the offset behind it. */
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
    return cutWell(text, most)
  }
}

/** Cuts without parting a surrogate pair. */
function cutWell(text: string, most: number): string {
  if (text.length <= most) return text
  const last = text.charCodeAt(most - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most)
}

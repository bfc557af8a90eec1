import type { Chunk } from '../../src/protocol/chunk.ts'

/** Counts what a client receives of a turn, as PROTOCOL.md describes positions (PO6, PO7). */
export class PositionClient {
  readonly chunks: Chunk[] = []
  #entry: string | undefined
  #offset: number | undefined

  /** Takes a chunk. `id` is the position that was sent with it, if any. */
  take(chunk: Chunk, id: string | undefined): void {
    this.chunks.push(chunk)
    if (id !== undefined && id !== this.#entry) {
      this.#entry = id
      this.#offset = undefined
    }
    if ('delta' in chunk) this.#offset = (this.#offset ?? 0) + chunk.delta.length
  }

  /** The position of everything that was received so far. Undefined before the first chunk. */
  get position(): string | undefined {
    return this.#offset === undefined ? this.#entry : `${this.#entry}:${this.#offset}`
  }

  get text(): string {
    return this.chunks.map((chunk) => ('delta' in chunk ? chunk.delta : '')).join('')
  }

  /** Takes an event of an SSE stream, with its position if it has one. */
  takeEvent(event: string): void {
    const [, id, json] = /^(?:id: (\S+)\n)?data: (\{.*)$/.exec(event) ?? []
    // The server sends chunks in these events.
    if (json !== undefined) this.take(JSON.parse(json) as Chunk, id)
  }
}

/** Returns chunks with the consecutive deltas of each part joined. */
export function joinDeltas(chunks: readonly Chunk[]): Chunk[] {
  const joined: Chunk[] = []
  for (const chunk of chunks) {
    const last = joined.at(-1)
    const continues =
      'delta' in chunk &&
      last &&
      'delta' in last &&
      last.id === chunk.id &&
      last.type === chunk.type
    if (continues) joined[joined.length - 1] = { ...last, delta: last.delta + chunk.delta }
    else joined.push(chunk)
  }
  return joined
}

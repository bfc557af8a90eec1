/** 16 bit at 16 kHz. */
const BYTES_PER_SECOND = 32_000

/** The newest audio that could not be sent yet. Older audio is dropped. */
export class SoundBacklog {
  #pieces: Uint8Array<ArrayBuffer>[] = []
  #bytes = 0
  /** Bytes since the last `clear`, including those that were dropped. */
  #missed = 0

  get missedMs(): number {
    return (this.#missed * 1000) / BYTES_PER_SECOND
  }

  add(piece: Uint8Array<ArrayBuffer>): void {
    this.#pieces.push(piece)
    this.#bytes += piece.length
    this.#missed += piece.length
    // The server accepts at most 64 KiB in a frame, and two seconds of audio at once.
    while (this.#bytes > 2 * BYTES_PER_SECOND) this.#bytes -= this.#pieces.shift()?.length ?? 0
  }

  /** Returns all of it in one piece, or undefined if there is none. */
  peek(): Uint8Array<ArrayBuffer> | undefined {
    if (this.#bytes === 0) return undefined
    const all = new Uint8Array(this.#bytes)
    let at = 0
    for (const piece of this.#pieces) {
      all.set(piece, at)
      at += piece.length
    }
    return all
  }

  clear(): void {
    this.#pieces = []
    this.#bytes = 0
    this.#missed = 0
  }
}

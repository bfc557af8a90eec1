/** 16 bit at 16 kHz. */
const BYTES_PER_SECOND = 32_000

/** The newest speech that could not be sent yet; what is older is lost. */
export class SoundBacklog {
  #pieces: Uint8Array<ArrayBuffer>[] = []
  #bytes = 0
  /** Bytes that came since the last `take`, also those that are lost. */
  #missed = 0

  get missedMs(): number {
    return (this.#missed * 1000) / BYTES_PER_SECOND
  }

  add(piece: Uint8Array<ArrayBuffer>): void {
    this.#pieces.push(piece)
    this.#bytes += piece.length
    this.#missed += piece.length
    // The server takes at most 64 KiB in a frame, and two seconds beyond what is being said.
    while (this.#bytes > 2 * BYTES_PER_SECOND) this.#bytes -= this.#pieces.shift()?.length ?? 0
  }

  /** All of it in one piece, if there is any. */
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

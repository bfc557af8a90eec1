import type { Part } from '@google/genai'

/**
 * Distinguishes audio from before and after an interruption. An interruption is reported at once, while audio still waits in ADK's
 * queue. The queue keeps the order and does not mark the audio, but it keeps the same `Part` objects.
 */
export class AudioEpochs {
  readonly #epochs = new WeakMap<Part, number>()
  #current = 0

  /** Records the epoch of new model output. */
  record(parts: readonly Part[]): void {
    for (const part of parts) if (part.inlineData) this.#epochs.set(part, this.#current)
  }

  /** Starts a new epoch. */
  interrupt(): void {
    this.#current += 1
  }

  /** Whether the audio is from before an interruption. */
  isStale(parts: readonly Part[]): boolean {
    return parts.some((part) => (this.#epochs.get(part) ?? Infinity) < this.#current)
  }
}

import type { Part } from '@google/genai'

/**
 * Tells sound of before an interruption from sound of after it. An interruption is told at once, while sound still waits in ADK's
 * queue, which keeps the order and marks neither; but its parts stay the objects that they were.
 */
export class SoundMarks {
  readonly #marks = new WeakMap<Part, number>()
  #interruptions = 0

  /** The model said this. */
  note(parts: readonly Part[]): void {
    for (const part of parts) if (part.inlineData) this.#marks.set(part, this.#interruptions)
  }

  interrupt(): void {
    this.#interruptions += 1
  }

  /** Whether an interruption has overtaken it. */
  areOvertaken(parts: readonly Part[]): boolean {
    return parts.some((part) => (this.#marks.get(part) ?? Infinity) < this.#interruptions)
  }
}

/** An interruption is told at once, and can overtake sound that is still being worked on: what comes within this time is of before. */
const OVERTAKEN_MS = 250

/** Keeps sound of an answer that was interrupted from being played. */
export class Muffler {
  readonly #now: () => number
  #until = 0

  constructor(now: () => number) {
    this.#now = now
  }

  get isSilent(): boolean {
    return this.#now() < this.#until
  }

  /** The server broke the answer off. It may begin it anew, in the same message. */
  forAMoment(): void {
    this.#until = Math.max(this.#until, this.#now() + OVERTAKEN_MS)
  }

  /** The person wants to hear no more of the answer, and not every model can be told so. */
  untilNextAnswer(): void {
    this.#until = Infinity
  }

  /** An answer has ended, or another one begins. */
  end(): void {
    this.#until = 0
  }
}

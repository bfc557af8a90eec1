/** Of the time that `goAway` leaves, what the move itself may take. */
const MOVING_MS = 2000

/** The latest moment to leave a connection that Gemini is about to close. */
export class Departure {
  #timer: NodeJS.Timeout | undefined

  get isPlanned(): boolean {
    return this.#timer !== undefined
  }

  /** `timeLeft` is a duration as Google writes it, `9.5s`. */
  plan(timeLeft: string | undefined, leave: () => void): void {
    const leftMs = Number.parseFloat(timeLeft ?? '') * 1000 || 0
    clearTimeout(this.#timer)
    this.#timer = setTimeout(leave, Math.max(leftMs / 2, leftMs - MOVING_MS))
  }

  cancel(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

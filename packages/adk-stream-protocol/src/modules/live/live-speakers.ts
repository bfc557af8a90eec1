/** A client that sends the audio of a microphone to a chat. */
export interface LiveSpeaker {
  /** Another client of the chat has started to speak. The audio of this one is ignored from now on. */
  readonly onTakenOver: () => void
  /** Whether the client has disconnected. */
  readonly hasLeft: () => boolean
}

/** How long a microphone must be silent before its audio takes over again. */
const PAUSE_MS = 2_000

/** LV880: the client of a chat that the model hears. A model cannot listen to two microphones, so the newest speaker takes over. */
export class LiveSpeakers {
  #current: LiveSpeaker | undefined
  /** When audio last arrived from a speaker that another one has taken over from. */
  readonly #ignoredAt = new WeakMap<LiveSpeaker, number>()
  /** When audio last arrived after another process had taken the session over. */
  #movedAt = -Infinity

  /** Takes note of audio of a client. Returns whether the model is to hear it. `isHere`: this process has the session, or starts it. */
  hears(speaker: LiveSpeaker, isHere: boolean): boolean {
    const now = performance.now()
    if (!isHere && now - this.#movedAt < PAUSE_MS) {
      this.#movedAt = now
      return false
    }
    const ignoredAt = this.#ignoredAt.get(speaker)
    if (ignoredAt !== undefined && now - ignoredAt < PAUSE_MS) {
      this.#ignoredAt.set(speaker, now)
      return false
    }
    if (this.#current !== speaker) this.silence()
    this.#ignoredAt.delete(speaker)
    this.#current = speaker
    return true
  }

  /** Ends the speech of a client. Returns false if another client speaks. */
  end(speaker: LiveSpeaker): boolean {
    if (this.#current !== undefined && this.#current !== speaker) return false
    this.#current = undefined
    return true
  }

  /** Lets the next audio of a client take over, because it has started again. */
  allow(speaker: LiveSpeaker): void {
    this.#movedAt = -Infinity
    this.#ignoredAt.delete(speaker)
  }

  /** Another process has taken the session over. */
  moved(): void {
    this.#movedAt = performance.now()
  }

  /** This process has taken the session over. */
  returned(): void {
    this.#movedAt = -Infinity
  }

  /** Ignores the present speaker, because another client speaks, perhaps in another process. */
  silence(): void {
    const speaker = this.#current
    if (!speaker) return
    this.#current = undefined
    this.#ignoredAt.set(speaker, performance.now())
    speaker.onTakenOver()
  }
}

/**
 * Removes from a reply what clients already have of it. After a lost connection, the model starts its reply again, usually with the same
 * words. A reply that differs is kept whole: clients show it after the text that was cut off.
 */
export class RepeatedText {
  /** The text that clients have from the attempts before this one. */
  #known = ''
  /** The text of this attempt in complete events. */
  #attempt = ''
  /** The text of this attempt after the last complete event. */
  #pieces = ''
  /** The text that was removed and must be given back, because the attempt differs. */
  #removed = ''
  /** `repeating`: everything so far is known. `new`: nothing more is known. `different`: the attempt is not a repetition. */
  #state: 'repeating' | 'new' | 'different' = 'new'

  /** Takes a streamed piece of text. Returns what of it to show. */
  takePiece(piece: string): string {
    const before = this.#attempt + this.#pieces
    this.#pieces += piece
    return this.#compare(before, piece)
  }

  /** Takes a complete text, which repeats its pieces. Returns what of it to store. */
  takeWhole(text: string): string {
    const before = this.#attempt
    this.#attempt += text
    this.#pieces = ''
    const shown = this.#compare(before, text)
    if (this.#state === 'different') {
      const whole = this.#removed + text
      this.#removed = ''
      return whole
    }
    return shown
  }

  /** The model starts the reply again. */
  restart(): void {
    const isRepetition = this.#state !== 'different' && this.#known.startsWith(this.#attempt)
    this.#known = isRepetition ? this.#known : this.#attempt
    this.#attempt = ''
    this.#pieces = ''
    this.#removed = ''
    this.#state = this.#known === '' ? 'new' : 'repeating'
  }

  /** What follows is not repeated: the model has ended its turn, or has made a call. */
  reset(): void {
    this.#known = ''
    this.#attempt = ''
    this.#pieces = ''
    this.#removed = ''
    this.#state = 'new'
  }

  /** Returns what clients do not have of a text that follows `before` in this attempt. */
  #compare(before: string, text: string): string {
    const known = this.#known
    const whole = before + text
    if (this.#state === 'repeating' && !known.startsWith(whole)) {
      this.#state = whole.startsWith(known) ? 'new' : 'different'
      if (this.#state === 'different') {
        this.#removed = this.#attempt.slice(0, before.length)
        return whole
      }
    }
    if (this.#state === 'different') return text
    return whole.slice(Math.max(before.length, known.length))
  }
}

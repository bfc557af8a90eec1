/**
 * For whom the model speaks. A live connection is one stream of model turns; nothing in it says what a turn answers. But the model
 * answers in order: what was said to it first, and results of calls it waits for before anything that was said meanwhile.
 */
export class Floor<Party extends object> {
  /** Those who said something and are not answered yet, in order. */
  readonly #expected: Party[] = []
  #holder: Party | undefined
  /** Whether the holder said something that the model answers. */
  #wasAsked = false
  /** Calls that silence the model until each is answered. */
  readonly #blocking = new Set<string>()
  #calls: 'none' | 'open' | 'answered' = 'none'
  /** Whether the model completes a turn that ends in calls at once, or when they are answered. Models differ; this one shows it. */
  #completesCalls: boolean

  constructor({ completesCalls }: { readonly completesCalls: boolean }) {
    this.#completesCalls = completesCalls
  }

  get holder(): Party | undefined {
    return this.#holder
  }

  /** Whether the model owes a party something, or is giving it. */
  owes(party: Party): boolean {
    return this.#holder === party || this.#expected.includes(party)
  }

  /** Whether the model's turn stands still until calls are answered. */
  get standsStill(): boolean {
    return this.#calls === 'open' && this.#blocking.size > 0
  }

  /** A party said something that the model will answer. */
  said(party: Party): void {
    this.#expected.push(party)
  }

  /** The model says or does something: for whom? Nobody, when nobody said anything. */
  spoke(): Party | undefined {
    if (this.#holder && this.#calls === 'answered') {
      this.#calls = 'none'
      this.#completesCalls = false
    }
    if (!this.#holder) {
      this.#holder = this.#expected.shift()
      this.#wasAsked = true
    }
    return this.#holder
  }

  /** Gives the floor to a party that nobody expected. */
  take(party: Party): void {
    this.#holder = party
    this.#wasAsked = false
  }

  /** What the holder said is known by now. */
  understood(): void {
    this.#wasAsked = true
  }

  /** The model made calls that it waits for. */
  called(ids: readonly string[]): void {
    for (const id of ids) this.#blocking.add(id)
    if (ids.length > 0) this.#calls = 'open'
  }

  /** A result was sent to the model, for a call of this party. */
  answered(id: string, party: Party): void {
    const blocking = this.#blocking.delete(id)
    if (!blocking) this.#expected.push(party)
    else if (this.#blocking.size > 0) return
    else if (this.#holder === party && this.#calls === 'open') this.#calls = 'answered'
    else this.#expected.unshift(party)
  }

  /** The model took a call back, and waits for it no longer. */
  dropped(id: string): void {
    this.#blocking.delete(id)
  }

  /** The model was cut off, and begins its answer anew. False if nobody asked for what it said. */
  beginsAnew(): boolean {
    const holder = this.#holder
    if (!holder || !this.#wasAsked) return false
    this.#holder = undefined
    this.#expected.unshift(holder)
    return true
  }

  /** The model's turn is complete. Tells whose it was, and whether more is to come for it. */
  completed(): Party | undefined {
    const party = this.#holder ?? this.#expected.shift()
    const calls = this.#calls
    this.#holder = undefined
    this.#calls = 'none'
    if (calls === 'open' && this.#blocking.size > 0) this.#completesCalls = true
    if (party && calls === 'answered' && this.#completesCalls) this.#expected.unshift(party)
    return party
  }
}

import type { Event } from '@google/adk'

/** The events of one stretch of a message, from its begin or a pause to the next pause or its end: pushed in, read out in order. */
export class Segment implements AsyncIterable<Event> {
  readonly #waiting: Event[] = []
  #wake: (() => void) | undefined
  #end: 'open' | 'ended' | { readonly error: unknown } = 'open'

  /** Whether calls of it run on that are told later. */
  leavesCalls = false

  get open(): boolean {
    return this.#end === 'open'
  }

  push(event: Event): void {
    this.#waiting.push(event)
    this.#wake?.()
  }

  /** Forgets what was told in another way already: all up to the last of these events. */
  skip(eventIds: ReadonlySet<string>): void {
    const last = this.#waiting.findLastIndex(({ id }) => eventIds.has(id))
    this.#waiting.splice(0, last + 1)
  }

  end(): void {
    this.#finish('ended')
  }

  fail(error: unknown): void {
    this.#finish({ error })
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event> {
    try {
      for (;;) {
        // Not `yield*`, which waits several times for each event of a list.
        for (const event of this.#waiting.splice(0)) yield event
        if (this.#waiting.length > 0) continue
        if (typeof this.#end === 'object') throw this.#end.error
        if (this.#end === 'ended') return
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    } finally {
      // Nobody reads on.
      this.end()
    }
  }

  #finish(end: 'ended' | { readonly error: unknown }): void {
    if (this.#end === 'open') this.#end = end
    this.#wake?.()
  }
}

import type { AsyncQueue, Event } from '@google/adk'

interface Waiting {
  readonly count: number
  readonly resolve: () => void
}

/** The events of a workflow on their way to the session. ADK 2.0.0 does not wait until they are stored. */
export class StoredQueue {
  #pushed = 0
  #taken = 0
  #stored = 0
  #isClosed = false
  #waiting: Waiting[] = []

  /** Call this before ADK reads the channel. */
  constructor(
    channel: AsyncQueue<Event>,
    { onPush, onClose }: { readonly onPush: (event: Event) => void; readonly onClose: () => void },
  ) {
    const push = channel.push.bind(channel)
    const close = channel.close.bind(channel)
    const fail = channel.fail.bind(channel)
    const iterate = channel[Symbol.asyncIterator].bind(channel)
    const end = (): void => {
      this.#isClosed = true
      this.#release()
      onClose()
    }
    Object.assign(channel, {
      push: (event: Event): void => {
        if (channel.isClosed) return
        this.#pushed += 1
        onPush(event)
        push(event)
      },
      close: (): void => {
        close()
        end()
      },
      fail: (error: unknown): void => {
        fail(error)
        end()
      },
      // ADK asks for the next event when it has stored the one before.
      [Symbol.asyncIterator]: () => {
        const events = iterate()
        return {
          next: async (): Promise<IteratorResult<Event>> => {
            this.#stored = this.#taken
            this.#release()
            const result = await events.next()
            if (result.done !== true) this.#taken += 1
            return result
          },
        }
      },
    })
  }

  /** Resolves when all events that were pushed so far are stored, or when the run has ended. */
  async stored(): Promise<void> {
    const count = this.#pushed
    if (this.#isClosed || this.#stored >= count) return
    await new Promise<void>((resolve) => {
      this.#waiting.push({ count, resolve })
    })
  }

  #release(): void {
    const left: Waiting[] = []
    for (const waiting of this.#waiting)
      if (this.#isClosed || this.#stored >= waiting.count) waiting.resolve()
      else left.push(waiting)
    this.#waiting = left
  }
}

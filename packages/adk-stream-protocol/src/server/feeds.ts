import { ProtocolError } from '../protocol/errors.ts'
import type { Feed, FeedClient } from '../transport/feed.ts'
import { Quota } from '../turns/quota.ts'

/** Begins to watch, and gives the way to stop. */
type Watch<Event> = (listener: (event: Event) => void) => () => void

/** The feeds that are open: so many for a principal, and all of them end with the bridge. */
export class Feeds {
  readonly #perPrincipal: Quota
  readonly #open = new Set<() => void>()
  #closed = false

  constructor(maxPerPrincipal: number) {
    this.#perPrincipal = new Quota(maxPerPrincipal)
  }

  /** Whether anybody watches anything. */
  get watched(): boolean {
    return this.#open.size > 0
  }

  /** Opens a feed for a principal. What is watched counts from here on, also before the client is there. */
  open<Event>(principalId: string, watch: Watch<Event>): Feed {
    if (this.#closed) throw new ProtocolError('unavailable')
    const release = this.#perPrincipal.take(principalId)
    if (!release) throw new ProtocolError('too-many-watchers')
    let client: FeedClient | undefined
    const stop = watch((event) => client?.send(JSON.stringify(event)))
    const leave = (): void => {
      this.#open.delete(end)
      release()
      stop()
    }
    const end = (): void => {
      leave()
      client?.end()
    }
    this.#open.add(end)
    return (given) => {
      client = given
      if (this.#closed) given.end()
      return leave
    }
  }

  /** Ends all feeds and opens no new ones. */
  close(): void {
    this.#closed = true
    for (const end of this.#open) end()
  }
}

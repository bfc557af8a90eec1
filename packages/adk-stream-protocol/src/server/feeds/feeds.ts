import { ProtocolError } from '../../protocol/errors.ts'
import type { Feed, FeedClient } from '../http/feed-stream.ts'
import { Quota } from '../../turns/quota.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { Rechecked } from '../auth/credentials.ts'
import { Recheck } from '../auth/credentials.ts'
import type { AuthenticatedRequest } from '../http/route.ts'

/** Begins to watch for a principal, whose roles may change meanwhile, and gives the way to stop. */
type Watch<Event> = (reader: () => Principal, listener: (event: Event) => void) => () => void

export interface FeedsOptions {
  readonly maxFeedsPerPrincipal: number
  readonly reauthenticateMs: number
}

/** The feeds that are open: so many for a principal; each ends with its reader's credentials, and all of them with the bridge. */
export class Feeds {
  readonly #options: FeedsOptions
  readonly #perPrincipal: Quota
  readonly #open = new Set<() => void>()
  #closed = false

  constructor(options: FeedsOptions) {
    this.#options = options
    this.#perPrincipal = new Quota(options.maxFeedsPerPrincipal)
  }

  /** Whether anybody watches anything. */
  get watched(): boolean {
    return this.#open.size > 0
  }

  /** Opens a feed for who asks. What is watched counts from here on, also before the client is there. */
  open<Event>(
    visit: Pick<AuthenticatedRequest, 'principal' | 'checkPrincipal'>,
    watch: Watch<Event>,
  ): Feed {
    if (this.#closed) throw new ProtocolError('unavailable')
    let { principal } = visit
    const release = this.#perPrincipal.take(principal.id)
    if (!release) throw new ProtocolError('too-many-watchers')
    let client: FeedClient | undefined
    let isOver = false
    const stop = watch(
      () => principal,
      (event) => client?.send(JSON.stringify(event)),
    )
    const rechecked: Rechecked = {
      checkPrincipal: visit.checkPrincipal,
      onChecked: (checked) => (principal = checked),
      onCredentialsEnd: () => {
        client?.send(JSON.stringify(new ProtocolError('unauthenticated')))
        end()
      },
    }
    const recheck = new Recheck(rechecked, principal, this.#options.reauthenticateMs)
    const leave = (): void => {
      isOver = true
      this.#open.delete(end)
      recheck.stop()
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
      if (isOver) given.end()
      return leave
    }
  }

  /** Ends all feeds and opens no new ones. */
  close(): void {
    this.#closed = true
    for (const end of this.#open) end()
  }
}

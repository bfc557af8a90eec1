import { ProtocolError } from '../../protocol/errors.ts'
import { Quota } from '../../shared/collections.ts'
import type { Principal, Rechecked } from '../auth/authenticate.ts'
import { recheckCredentials } from '../auth/authenticate.ts'
import type { Feed, FeedClient } from '../http/exchange.ts'
import type { AuthenticatedRequest } from '../http/http-router.ts'

/** Subscribes a reader to events. `reader` returns the principal with its current roles. Returns a function that unsubscribes. */
type Watch<Event> = (reader: () => Principal, listener: (event: Event) => void) => () => void

export interface FeedsOptions {
  readonly maxFeedsPerPrincipal: number
  readonly reauthenticateMs: number
}

/** The open feeds. Limits their number per principal, and ends a feed when its reader's credentials end or the bridge closes. */
export class Feeds {
  readonly #options: FeedsOptions
  readonly #perPrincipal: Quota
  readonly #open = new Set<() => void>()
  #closed = false

  constructor(options: FeedsOptions) {
    this.#options = options
    this.#perPrincipal = new Quota(options.maxFeedsPerPrincipal)
  }

  /** The number of open feeds. */
  get size(): number {
    return this.#open.size
  }

  /** Opens a feed for a request. It counts against the limit from now on, before the client is connected. */
  open<Event>(
    request: Pick<AuthenticatedRequest, 'principal' | 'checkPrincipal'>,
    watch: Watch<Event>,
  ): Feed {
    if (this.#closed) throw new ProtocolError('unavailable')
    let { principal } = request
    const release = this.#perPrincipal.take(principal.id)
    if (!release) throw new ProtocolError('too-many-watchers')
    let client: FeedClient | undefined
    let isOver = false
    const stop = watch(
      () => principal,
      (event) => client?.send(JSON.stringify(event)),
    )
    const rechecked: Rechecked = {
      checkPrincipal: request.checkPrincipal,
      onChecked: (checked) => (principal = checked),
      onCredentialsEnd: () => {
        client?.send(JSON.stringify(new ProtocolError('unauthenticated')))
        end()
      },
    }
    const stopRecheck = recheckCredentials(rechecked, principal, this.#options.reauthenticateMs)
    const leave = (): void => {
      isOver = true
      this.#open.delete(end)
      stopRecheck()
      release()
      stop()
    }
    const end = (): void => {
      leave()
      client?.end()
    }
    this.#open.add(end)
    return (connected) => {
      client = connected
      if (isOver) connected.end()
      return leave
    }
  }

  /** Ends all feeds and opens no new ones. */
  close(): void {
    this.#closed = true
    for (const end of this.#open) end()
  }
}

import type { Guard } from '../../protocol/guards.ts'
import type { ChatEvent } from '../../protocol/server-views.ts'
import { readKeepAlive } from '../../protocol/sse.ts'
import type { Backoff } from '../../shared/backoff.ts'
import { delayBefore, sleep, withDefaults } from '../../shared/backoff.ts'
import { disconnected, parseJson } from '../adk-error.ts'
import { readEvents } from '../transports/read-sse.ts'
import type { Http } from './http.ts'

/**
 * An event of a feed, or a change of the feed itself.
 *
 * @inline
 */
export type WatchEvent<Event = ChatEvent> =
  | Event
  /** The feed is open. Events from before, or from while it was lost, are not reported. */
  | { readonly type: 'open'; readonly again: boolean }
  /** The feed is opened again at `retryAt`, in ms since 1970. */
  | {
      readonly type: 'lost'
      readonly attempt: number
      readonly retryAt: number
      readonly error: unknown
    }

/**
 * Called with the events of a feed.
 *
 * @inline
 */
export type WatchListener<Event = ChatEvent> = (event: WatchEvent<Event>) => void

/**
 * How a feed is watched.
 *
 * @inline
 */
export interface WatchOptions {
  /** The delays before the feed is opened again. There is no limit of attempts. If several listeners share a feed, the options of the first apply. */
  readonly backoff?: Omit<Backoff, 'attempts'>
  readonly signal?: AbortSignal
}

interface Feed<Event> {
  readonly http: Http
  readonly path: string
  readonly isEvent: Guard<Event>
}

/** Follows a feed of the bridge. Returns a function that closes it. */
export function watchFeed<Event>(
  feed: Feed<Event>,
  listener: WatchListener<Event>,
  options: WatchOptions = {},
): () => void {
  const closing = new AbortController()
  const { signal } = closing
  options.signal?.addEventListener('abort', () => closing.abort(), { once: true })
  if (options.signal?.aborted === true) closing.abort()
  const notify: WatchListener<Event> = (event) => {
    if (!signal.aborted) listener(event)
  }
  void follow(feed, { notify, signal, backoff: withDefaults(options.backoff) })
  return () => closing.abort()
}

interface Following<Event> {
  readonly notify: WatchListener<Event>
  readonly signal: AbortSignal
  readonly backoff: Required<Backoff>
}

async function follow<Event>(
  feed: Feed<Event>,
  { notify, signal, backoff }: Following<Event>,
): Promise<void> {
  let attempt = 0
  for (let again = false; !signal.aborted; again = true) {
    const error = await read(feed, signal, (event) => {
      if (event !== 'open') attempt = 0
      notify(event === 'open' ? { type: 'open', again } : event)
    })
    const delay = delayBefore(attempt, backoff)
    attempt += 1
    notify({ type: 'lost', attempt, retryAt: Date.now() + delay, error })
    await sleep(delay, signal)
  }
}

/** Reads the feed until it ends, fails or falls silent. Returns the reason. */
async function read<Event>(
  { http, path, isEvent }: Feed<Event>,
  signal: AbortSignal,
  onEvent: (event: Event | 'open') => void,
): Promise<unknown> {
  const silence = new SilenceTimeout()
  const either = AbortSignal.any([signal, silence.signal])
  const onComment = (comment: string): void => silence.restart(readKeepAlive(`: ${comment}`))
  try {
    const { body } = await http.send(path, { signal: either })
    onEvent('open')
    for await (const events of body ? readEvents(body, { signal: either, onComment }) : []) {
      silence.restart()
      for (const data of events) {
        // An event that this version does not know is ignored.
        const event = parseJson(data)
        if (isEvent(event)) onEvent(event)
      }
    }
    return disconnected('the feed ended')
  } catch (error) {
    return error
  } finally {
    silence.stop()
  }
}

/** The timeout before the server has announced its keep-alive interval, in ms: three times the default interval. */
const DEFAULT_TIMEOUT_MS = 45_000

/** The number of keep-alive intervals after which a feed counts as lost. */
const MISSED_INTERVALS = 3

/** Aborts a feed on which nothing arrives: a half-open connection neither delivers anything nor ends. */
class SilenceTimeout {
  readonly #controller = new AbortController()
  #ms = DEFAULT_TIMEOUT_MS
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor() {
    this.restart()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Something arrived, perhaps with the interval in which keep-alives follow. */
  restart(keepAliveMs?: number): void {
    clearTimeout(this.#timer)
    if (keepAliveMs !== undefined) this.#ms = keepAliveMs * MISSED_INTERVALS
    this.#timer = setTimeout(
      () => this.#controller.abort(disconnected('the feed fell silent')),
      this.#ms,
    )
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}

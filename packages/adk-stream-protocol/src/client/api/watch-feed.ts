import type { FeedEvent, ChatEvent } from '../../protocol/server-views.ts'
import { isFeedEvent } from '../../protocol/server-views.ts'
import { type Http, readEvents } from './http.ts'
import { startSilenceTimeout } from './silence-timeout.ts'
import type { Guard } from '../../protocol/guards.ts'
import type { Backoff } from '../../shared/backoff.ts'
import { delayBefore, withDefaults } from '../../shared/backoff.ts'
import { waitForNextAttempt } from '../connection/connection-state.ts'
import { disconnected, parseJson } from '../adk-error.ts'

interface Watcher {
  readonly listener: WatchListener<FeedEvent>
  readonly options: WatchOptions
  /** Whether the listener was called with `open`. */
  isOpened: boolean
}

/** How long a hidden page keeps its feed open, in ms. */
const HIDDEN_MS = 30_000

/**
 * The feed of a page, shared by all listeners: over HTTP/1.1 a browser opens at most six connections to a server, for all tabs together.
 * A hidden page closes its feed after 30 seconds. When the page is visible again, the listeners are called with `open`.
 */
export class PageFeed {
  readonly #http: Http
  readonly #hiddenMs: number
  readonly #watchers = new Set<Watcher>()
  #close: (() => void) | undefined
  #isOpen = false
  #isLost = false
  #hiddenTimer: ReturnType<typeof setTimeout> | undefined

  constructor(http: Http, hiddenMs = HIDDEN_MS) {
    this.#http = http
    this.#hiddenMs = hiddenMs
  }

  /** Whether the feed is being opened again after it was lost. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** Returns a function that unsubscribes. The back-off of the first listener applies. */
  watch(listener: WatchListener<FeedEvent>, options: WatchOptions = {}): () => void {
    const watcher: Watcher = { listener, options, isOpened: false }
    const leave = (): void => {
      if (this.#watchers.delete(watcher) && this.#watchers.size === 0) this.#stop()
    }
    if (options.signal?.aborted === true) return leave
    options.signal?.addEventListener('abort', leave, { once: true })
    this.#watchers.add(watcher)
    if (this.#watchers.size === 1) this.#start()
    // Not before `watch` has returned, as for the first listener.
    else queueMicrotask(() => this.#announceOpen(watcher))
    return leave
  }

  #start(): void {
    page()?.addEventListener('visibilitychange', this.#onVisibilityChange)
    this.#connect()
    this.#onVisibilityChange()
  }

  #stop(): void {
    page()?.removeEventListener('visibilitychange', this.#onVisibilityChange)
    this.#disconnect()
  }

  #connect(): void {
    const [first] = this.#watchers
    const { backoff } = first?.options ?? {}
    const feed = { http: this.#http, path: '/events', isEvent: isFeedEvent }
    const onEvent = (event: WatchEvent<FeedEvent>): void => {
      if (event.type === 'open' || event.type === 'lost') {
        this.#isOpen = event.type === 'open'
        this.#isLost = event.type === 'lost'
      }
      for (const watcher of this.#watchers) this.#notify(watcher, event)
    }
    this.#close = watchFeed(feed, onEvent, backoff ? { backoff } : {})
  }

  #disconnect(): void {
    clearTimeout(this.#hiddenTimer)
    this.#hiddenTimer = undefined
    this.#close?.()
    this.#close = undefined
    this.#isOpen = false
    this.#isLost = false
  }

  readonly #onVisibilityChange = (): void => {
    if (page()?.visibilityState === 'hidden') {
      this.#hiddenTimer ??= setTimeout(() => this.#disconnect(), this.#hiddenMs)
      return
    }
    clearTimeout(this.#hiddenTimer)
    this.#hiddenTimer = undefined
    if (!this.#close) this.#connect()
  }

  /** Calls a listener that was added later with `open`, unless it was called meanwhile. */
  #announceOpen(watcher: Watcher): void {
    if (this.#isOpen && !watcher.isOpened) this.#notify(watcher, { type: 'open', again: false })
  }

  #notify(watcher: Watcher, event: WatchEvent<FeedEvent>): void {
    if (!this.#watchers.has(watcher)) return
    // `open` comes first, also for a listener that is added while an event is being reported.
    if (event.type !== 'open' && event.type !== 'lost' && !watcher.isOpened) return
    if (event.type !== 'open') return watcher.listener(event)
    const again = watcher.isOpened
    watcher.isOpened = true
    watcher.listener({ type: 'open', again })
  }
}

/** Returns undefined on servers and in workers. */
function page(): Document | undefined {
  return typeof document === 'undefined' ? undefined : document
}

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
function watchFeed<Event>(
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
    await waitForNextAttempt(delay, signal)
  }
}

/** Reads the feed until it ends, fails or falls silent. Returns the reason. */
async function read<Event>(
  { http, path, isEvent }: Feed<Event>,
  signal: AbortSignal,
  onEvent: (event: Event | 'open') => void,
): Promise<unknown> {
  const silence = startSilenceTimeout(signal)
  const { signal: either, onComment } = silence
  try {
    const { body } = await http.send(path, { signal: either })
    onEvent('open')
    for await (const events of body ? readEvents(body, { signal: either, onComment }) : []) {
      silence.restart()
      for (const { data } of events) {
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

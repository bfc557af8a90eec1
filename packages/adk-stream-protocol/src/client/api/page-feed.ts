import type { FeedEvent } from '../../protocol/server-views.ts'
import { isFeedEvent } from '../../protocol/server-views.ts'
import type { Http } from './http.ts'
import type { WatchEvent, WatchListener, WatchOptions } from './watch-feed.ts'
import { watchFeed } from './watch-feed.ts'

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
  #hiddenTimer: ReturnType<typeof setTimeout> | undefined

  constructor(http: Http, hiddenMs = HIDDEN_MS) {
    this.#http = http
    this.#hiddenMs = hiddenMs
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
      if (event.type === 'open' || event.type === 'lost') this.#isOpen = event.type === 'open'
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

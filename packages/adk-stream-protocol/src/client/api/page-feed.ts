import type { FeedEvent } from '../../protocol/chat-summary.ts'
import { isFeedEvent } from '../../protocol/chat-summary.ts'
import type { Http } from './http.ts'
import type { WatchEvent, WatchListener, WatchOptions } from './watch-feed.ts'
import { watchFeed } from './watch-feed.ts'

interface Watcher {
  readonly listener: WatchListener<FeedEvent>
  readonly options: WatchOptions
  /** Whether it was told that the feed is there. */
  isOpened: boolean
}

/** How long a page that nobody sees holds its feed, in ms. */
const HIDDEN_MS = 30_000

/**
 * The one feed of a page, for all who watch anything: over HTTP/1.1 a browser has six connections to a server, for all of its tabs.
 * A page that nobody sees gives its own back after a while; who watches is told to catch up when it is seen again.
 */
export class PageFeed {
  readonly #http: Http
  readonly #hiddenMs: number
  readonly #watchers = new Set<Watcher>()
  #end: (() => void) | undefined
  #isOpen = false
  #rest: ReturnType<typeof setTimeout> | undefined

  constructor(http: Http, hiddenMs = HIDDEN_MS) {
    this.#http = http
    this.#hiddenMs = hiddenMs
  }

  /** Watches, with all others; the pauses are those of whoever was first. Give back ends it. */
  watch(listener: WatchListener<FeedEvent>, options: WatchOptions = {}): () => void {
    const watcher: Watcher = { listener, options, isOpened: false }
    const leave = (): void => {
      if (this.#watchers.delete(watcher) && this.#watchers.size === 0) this.#stop()
    }
    if (options.signal?.aborted === true) return leave
    options.signal?.addEventListener('abort', leave, { once: true })
    this.#watchers.add(watcher)
    if (this.#watchers.size === 1) this.#begin()
    // Later, as for whoever was first.
    else queueMicrotask(() => this.#welcome(watcher))
    return leave
  }

  #begin(): void {
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
      for (const watcher of this.#watchers) this.#tell(watcher, event)
    }
    this.#end = watchFeed(feed, onEvent, backoff ? { backoff } : {})
  }

  #disconnect(): void {
    clearTimeout(this.#rest)
    this.#rest = undefined
    this.#end?.()
    this.#end = undefined
    this.#isOpen = false
  }

  readonly #onVisibilityChange = (): void => {
    if (page()?.visibilityState === 'hidden') {
      this.#rest ??= setTimeout(() => this.#disconnect(), this.#hiddenMs)
      return
    }
    clearTimeout(this.#rest)
    this.#rest = undefined
    if (!this.#end) this.#connect()
  }

  /** Tells one who came later that the feed is there, unless it has been told. */
  #welcome(watcher: Watcher): void {
    if (this.#isOpen && !watcher.isOpened) this.#tell(watcher, { type: 'open', again: false })
  }

  #tell(watcher: Watcher, event: WatchEvent<FeedEvent>): void {
    if (!this.#watchers.has(watcher)) return
    // Who came while others were told of something hears first that the feed is there.
    if (event.type !== 'open' && event.type !== 'lost' && !watcher.isOpened) return
    if (event.type !== 'open') return watcher.listener(event)
    const again = watcher.isOpened
    watcher.isOpened = true
    watcher.listener({ type: 'open', again })
  }
}

/** The page, where there is one: servers and workers have none. */
function page(): Document | undefined {
  return typeof document === 'undefined' ? undefined : document
}

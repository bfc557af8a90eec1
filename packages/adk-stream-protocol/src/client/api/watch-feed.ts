import type { Guard } from '../../protocol/guards.ts'
import type { ChatEvent } from '../../protocol/server-views.ts'
import { readKeepAlive } from '../../protocol/sse.ts'
import { disconnected } from '../adk-error.ts'
import type { Backoff } from '../../shared/backoff.ts'
import { delayBefore, withDefaults } from '../../shared/backoff.ts'
import { parseJson } from '../error-body.ts'
import type { Http } from './http.ts'
import { SilenceTimeout } from './silence-timeout.ts'
import { dataOf, readBlocks } from '../transports/read-sse.ts'
import { sleep } from '../../shared/backoff.ts'

/** What a watcher is told besides what happens: that it looks on, and that it does not. */
export type WatchEvent<Event = ChatEvent> =
  | Event
  /** The feed is there. What happened before it, and while it was lost, was not told. */
  | { readonly type: 'open'; readonly again: boolean }
  /** It is opened again at `retryAt`, in ms since 1970. */
  | {
      readonly type: 'lost'
      readonly attempt: number
      readonly retryAt: number
      readonly error: unknown
    }

/** Hears of a feed, until it is ended. */
export type WatchListener<Event = ChatEvent> = (event: WatchEvent<Event>) => void

/** How a feed is watched. */
export interface WatchOptions {
  /** The pauses before it is opened again. It is, until it is ended: `attempts` are not counted here. Of those who share a feed, those of the first count. */
  readonly backoff?: Omit<Backoff, 'attempts'>
  readonly signal?: AbortSignal
}

interface Feed<Event> {
  readonly http: Http
  readonly path: string
  readonly isEvent: Guard<Event>
}

/** Follows a feed of the bridge. Give back ends it. */
export function watchFeed<Event>(
  feed: Feed<Event>,
  listener: WatchListener<Event>,
  options: WatchOptions = {},
): () => void {
  const ending = new AbortController()
  const { signal } = ending
  options.signal?.addEventListener('abort', () => ending.abort(), { once: true })
  if (options.signal?.aborted === true) ending.abort()
  const tell: WatchListener<Event> = (event) => {
    if (!signal.aborted) listener(event)
  }
  void follow(feed, { tell, signal, backoff: withDefaults(options.backoff) })
  return () => ending.abort()
}

interface Watch<Event> {
  readonly tell: WatchListener<Event>
  readonly signal: AbortSignal
  readonly backoff: Required<Backoff>
}

async function follow<Event>(
  feed: Feed<Event>,
  { tell, signal, backoff }: Watch<Event>,
): Promise<void> {
  let attempt = 0
  for (let again = false; !signal.aborted; again = true) {
    const patience = new SilenceTimeout()
    const error = await read(feed, { signal, patience }, (event) => {
      if (event !== 'open') attempt = 0
      tell(event === 'open' ? { type: 'open', again } : event)
    })
    patience.end()
    const pause = delayBefore(attempt, backoff)
    attempt += 1
    tell({ type: 'lost', attempt, retryAt: Date.now() + pause, error })
    await sleep(pause, signal)
  }
}

/** Reads the feed until it breaks off or falls silent; gives what it broke off with. */
async function read<Event>(
  { http, path, isEvent }: Feed<Event>,
  { signal, patience }: { readonly signal: AbortSignal; readonly patience: SilenceTimeout },
  onEvent: (event: Event | 'open') => void,
): Promise<unknown> {
  const either = AbortSignal.any([signal, patience.signal])
  try {
    const { body } = await http.send(path, { signal: either })
    onEvent('open')
    for await (const block of body ? readBlocks(body, either) : []) {
      patience.heard(readKeepAlive(block))
      // What this page cannot read, it does not need.
      const event = parseJson(dataOf(block) ?? '')
      if (isEvent(event)) onEvent(event)
    }
    return disconnected('the feed ended')
  } catch (error) {
    return error
  }
}

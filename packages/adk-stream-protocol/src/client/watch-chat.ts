import { ChatEvent } from '../protocol/server-views.ts'
import { disconnected } from './adk-error.ts'
import type { Backoff } from './backoff.ts'
import { pauseBefore, withDefaults } from './backoff.ts'
import type { Http } from './http.ts'
import { readEvents } from './read-sse.ts'
import { sleep } from './sleep.ts'

/** What a watcher is told besides what happens: that it looks on, and that it does not. */
export type WatchEvent =
  | ChatEvent
  /** The feed is there. What happened before it, and while it was lost, was not told. */
  | { readonly type: 'open'; readonly again: boolean }
  /** It is opened again at `retryAt`, in ms since 1970. */
  | {
      readonly type: 'lost'
      readonly attempt: number
      readonly retryAt: number
      readonly error: unknown
    }

export type WatchListener = (event: WatchEvent) => void

export interface WatchOptions {
  /** The pauses before it is opened again. It is, until it is ended: `attempts` are not counted here. */
  readonly backoff?: Omit<Backoff, 'attempts'>
  readonly signal?: AbortSignal
}

interface Feed {
  readonly http: Http
  readonly path: string
}

/** Follows the feed of a chat. Give back ends it. */
export function watchChat(
  feed: Feed,
  listener: WatchListener,
  options: WatchOptions = {},
): () => void {
  const ending = new AbortController()
  const { signal } = ending
  options.signal?.addEventListener('abort', () => ending.abort(), { once: true })
  if (options.signal?.aborted === true) ending.abort()
  const tell = (event: WatchEvent): void => {
    if (!signal.aborted) listener(event)
  }
  void follow(feed, { tell, signal, backoff: withDefaults(options.backoff) })
  return () => ending.abort()
}

interface Watch {
  readonly tell: WatchListener
  readonly signal: AbortSignal
  readonly backoff: Required<Backoff>
}

async function follow(feed: Feed, { tell, signal, backoff }: Watch): Promise<void> {
  let attempt = 0
  for (let again = false; !signal.aborted; again = true) {
    const error = await read(feed, signal, (event) => {
      if (event !== 'open') attempt = 0
      tell(event === 'open' ? { type: 'open', again } : event)
    })
    const pause = pauseBefore(attempt, backoff)
    attempt += 1
    tell({ type: 'lost', attempt, retryAt: Date.now() + pause, error })
    await sleep(pause, signal)
  }
}

/** Reads the feed until it breaks off; gives what it broke off with. */
async function read(
  { http, path }: Feed,
  signal: AbortSignal,
  onEvent: (event: ChatEvent | 'open') => void,
): Promise<unknown> {
  try {
    const { body } = await http.send(path, { signal })
    onEvent('open')
    for await (const data of body ? readEvents(body) : []) {
      const event = readEvent(data)
      if (event) onEvent(event)
    }
    return disconnected('the feed ended')
  } catch (error) {
    return error
  }
}

function readEvent(data: string): ChatEvent | undefined {
  try {
    return ChatEvent.safeParse(JSON.parse(data)).data
  } catch {
    // What this page cannot read, it does not need.
    return undefined
  }
}

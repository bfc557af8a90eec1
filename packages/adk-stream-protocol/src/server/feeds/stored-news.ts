import { setImmediate } from 'node:timers/promises'

import { SerialTask } from '../../shared/async.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import { canReadChangeTags } from '../../store/store.ts'
import type { ChatEvents } from '../../turns/chat-events.ts'
import { keyOf, type TurnRegistry } from '../../turns/turn-registry.ts'
import type { Backend, LazyBackend } from '../chats/backend.ts'
import { toAppChat } from '../chats/backend.ts'
import { LOCK_RETRY_MS } from '../chats/turns/chat-locker.ts'

export interface StoredNewsOptions {
  readonly backend: LazyBackend
  readonly events: Pick<ChatEvents, 'watched' | 'isWatched' | 'principals' | 'stored'>
  readonly turns: Pick<TurnRegistry, 'has'>
  /** Whether a relay reports the turns of other processes. Without one, the changes of other processes are read at an interval. */
  readonly hasRelay: () => boolean
  readonly intervalMs: number
  readonly onError: (error: unknown) => void
}

/** A chat whose stored events have changed since they were last reported. */
interface ChangedChat {
  readonly chat: ChatRef
  /** Whether another process has changed it, and may still hold the chat lock. */
  readonly isElsewhere: boolean
}

/**
 * PO3: reports what is stored to the feeds of this process, when a chat has changed and no turn runs in it. A position that is reported is
 * the current one, or older than one that is still to be reported.
 */
export class StoredNews {
  readonly #options: StoredNewsOptions
  readonly #changed = new Map<string, ChangedChat>()
  readonly #reports = new SerialTask(() => this.#reportAll())
  readonly #reads = new SerialTask(() => this.#readOthers())
  readonly #interval: NodeJS.Timeout
  #retry: NodeJS.Timeout | undefined
  #retryMs = LOCK_RETRY_MS
  /** The tags of the chats of watched principals. */
  readonly #tags = new Map<string, ReadonlyMap<string, string>>()
  #changeCount: number | undefined
  #isClosed = false

  constructor(options: StoredNewsOptions) {
    this.#options = options
    const poll = (): void => {
      if (!this.#reads.isRunning) void this.#reads.run()
    }
    this.#interval = setInterval(poll, options.intervalMs).unref()
  }

  /** This process has changed a chat. If a turn runs in the chat, its end is reported. */
  written(chat: ChatRef): void {
    if (this.#options.events.watched) this.#change({ chat, isElsewhere: false })
  }

  /** Another process has changed a chat. It is reported when that process has released the chat. */
  changedElsewhere(chat: ChatRef): void {
    if (this.#options.events.watched) this.#change({ chat, isElsewhere: true })
  }

  /** A turn of a chat has started or ended in this process. */
  turnChanged(chat: ChatRef): void {
    if (this.#changed.has(keyOf(chat)) && !this.#options.turns.has(chat)) this.#wake()
  }

  /** Resolves when changes of the principal's chats by other processes, from now on, are reported. Never rejects. */
  async follow(principalId: string): Promise<void> {
    if (this.#tags.has(principalId)) return
    try {
      const backend = await this.#options.backend.get()
      const tags = await this.#readTags(backend, [principalId])
      if (tags && !this.#tags.has(principalId))
        this.#tags.set(principalId, toMap(tags.get(principalId)))
    } catch (error) {
      this.#options.onError(error)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#interval)
    clearTimeout(this.#retry)
    await this.#reads.settled()
    await this.#reports.settled()
  }

  #change(changed: ChangedChat): void {
    this.#changed.set(keyOf(changed.chat), changed)
    // Otherwise the end of the turn wakes this.
    if (!this.#options.turns.has(changed.chat)) this.#wake()
  }

  #wake(): void {
    // Several events are often written together, and a turn may start with them.
    void setImmediate().then(() => this.#reports.run())
  }

  async #reportAll(): Promise<void> {
    let isLeft = false
    // A chat that cannot be reported is added again for the next time, not for this loop.
    const all = [...this.#changed]
    for (const [key, changed] of all) {
      if (this.#isClosed) return
      if (this.#options.turns.has(changed.chat)) continue
      if (!this.#options.events.isWatched(changed.chat)) {
        this.#changed.delete(key)
        continue
      }
      isLeft = !(await this.#report(key, changed)) || isLeft
    }
    if (!isLeft) this.#retryMs = LOCK_RETRY_MS
    else this.#retryLater()
  }

  /** Returns false if the chat cannot be reported yet. */
  async #report(key: string, changed: ChangedChat): Promise<boolean> {
    const { backend: lazy, events, turns, onError } = this.#options
    const { chat, isElsewhere } = changed
    try {
      const backend = await lazy.get()
      if (isElsewhere && (await backend.ledger.locks.isLockedElsewhere(chat))) return false
      // Before the read: a later change is reported again.
      this.#changed.delete(key)
      const position = await backend.sessions.readPosition(toAppChat(backend, chat))
      if (turns.has(chat)) this.#changed.set(key, changed)
      else events.stored(chat, position)
      return true
    } catch (error) {
      this.#changed.set(key, changed)
      onError(error)
      return false
    }
  }

  #retryLater(): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => void this.#reports.run(), this.#retryMs).unref()
    this.#retryMs = Math.min(this.#retryMs * 2, this.#options.intervalMs)
  }

  /** Finds the chats that other processes have changed, without a relay that reports their turns. */
  async #readOthers(): Promise<void> {
    const { backend: lazy, events, hasRelay, onError } = this.#options
    try {
      const backend = lazy.opened
      if (!backend || hasRelay() || !events.watched) return this.#tags.clear()
      const principals = events.principals()
      for (const known of this.#tags.keys()) if (!principals.has(known)) this.#tags.delete(known)
      const { service } = backend.sessions
      if (!canReadChangeTags(service)) return
      const count = await service.readChangeCount()
      const isKnown = [...principals].every((principalId) => this.#tags.has(principalId))
      if (isKnown && count === this.#changeCount) return
      const tags = await this.#readTags(backend, [...principals])
      this.#changeCount = count
      for (const principalId of principals)
        this.#compare(principalId, toMap(tags?.get(principalId)))
    } catch (error) {
      if (!this.#isClosed) onError(error)
    }
  }

  #compare(principalId: string, tags: ReadonlyMap<string, string>): void {
    const known = this.#tags.get(principalId)
    this.#tags.set(principalId, tags)
    if (!known) return
    for (const [chatId, tag] of tags)
      if (known.get(chatId) !== tag) this.changedElsewhere({ principalId, chatId })
  }

  async #readTags(
    { sessions: { service }, appName }: Backend,
    userIds: readonly string[],
  ): Promise<ReadonlyMap<string, ReadonlyMap<string, string>> | undefined> {
    if (this.#options.hasRelay() || !canReadChangeTags(service)) return undefined
    return service.readChangeTags({ appName, userIds })
  }
}

const NO_TAGS: ReadonlyMap<string, string> = new Map()

function toMap(tags: ReadonlyMap<string, string> | undefined): ReadonlyMap<string, string> {
  return tags ?? NO_TAGS
}

import { setImmediate } from 'node:timers/promises'

import type { Approval, ApprovalStateName } from '../../approvals/approval.ts'
import { SerialTask } from '../../shared/async.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import { canReadChangeTags } from '../../store/store.ts'
import type { ChatEvents, UntilMet } from '../../turns/chat-events.ts'
import { keyOf, type TurnRegistry } from '../../turns/turn-registry.ts'
import type { Backend, LazyBackend } from '../chats/backend.ts'
import { toAppChat } from '../chats/backend.ts'
import { LOCK_RETRY_MS } from '../chats/turns/chat-locker.ts'
import { readCallState } from '../chats/host/stored-calls.ts'
import type { ApprovalChange, NewsPoll } from './approval-news.ts'

export interface StoredNewsOptions {
  readonly backend: LazyBackend
  readonly events: Pick<ChatEvents, 'watched' | 'isWatched' | 'principals' | 'stored' | 'until'>
  /** Whether clients watch a chat on sockets. */
  readonly hasListeners: (chat: ChatRef) => boolean
  /** Called when the end of an approval, which another process has changed, is part of the conversation, unless a request reads it. */
  readonly onEndStored: (approval: Approval) => void
  readonly turns: Pick<TurnRegistry, 'has'>
  readonly newsPoll: Pick<NewsPoll, 'check'>
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
  /** Approvals that have ended in another process, which has yet to store that. */
  readonly ended: readonly Approval[]
  /** The position that was reported while their ends were not stored. */
  readonly reported?: string
}

/**
 * PO3: reports what is stored to the feeds of this process, when a chat has changed and no turn runs in it. A position that is reported is
 * the current one, or older than one that is still to be reported.
 */
export class StoredNews {
  readonly #options: StoredNewsOptions
  readonly #changed = new Map<string, ChangedChat>()
  /** Approvals whose end a request of this process reads, until their end is reported. */
  readonly #read = new Set<string>()
  readonly #reports = new SerialTask(() => this.#reportAll())
  readonly #reads = new SerialTask(() => this.#readOthers())
  readonly #interval: NodeJS.Timeout
  #retry: NodeJS.Timeout | undefined
  #retryMs = LOCK_RETRY_MS
  /** The tags of the chats of watched principals. */
  readonly #tags = new Map<string, ReadonlyMap<string, string>>()
  #changeCount: number | undefined
  readonly #closed = new AbortController()

  constructor(options: StoredNewsOptions) {
    this.#options = options
    const poll = (): void => {
      if (!this.#reads.isRunning) void this.#reads.run()
    }
    this.#interval = setInterval(poll, options.intervalMs).unref()
  }

  /** This process has changed a chat. If a turn runs in the chat, its end is reported. */
  written(chat: ChatRef): void {
    if (this.#options.events.watched) this.#change({ chat, isElsewhere: false, ended: [] })
  }

  /** Another process has changed an approval. When its end is part of the conversation, it is reported. */
  approvalChangedElsewhere({ approval, state }: Pick<ApprovalChange, 'approval' | 'state'>): void {
    if (hasEnded(state)) this.changedElsewhere(approval.chat, approval)
  }

  /**
   * Another process has changed a chat. It is reported when that process has released the chat, and again when the end of `approval` is
   * part of the conversation.
   */
  changedElsewhere(chat: ChatRef, approval?: Approval): void {
    const ended = approval ? [approval] : []
    if (this.#isWatched(chat)) this.#change({ chat, isElsewhere: true, ended })
    else if (approval) this.#read.delete(approval.id)
  }

  /** A request of this process reads the end of an approval, whichever process runs its call. Sockets do not receive it again. */
  noteRead({ id, state }: Approval): void {
    if (!hasEnded(state.name)) this.#read.add(id)
  }

  /** This process has changed an approval. If the approval has ended, no other process reports its end. */
  changedHere({ id, state }: Approval): void {
    if (hasEnded(state.name)) this.#read.delete(id)
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

  /** Waits for a condition that another process may meet. */
  readonly untilMet: UntilMet = async (chat, isMet, options = {}) => {
    const { running = [], signal = this.#closed.signal } = options
    const { backend, events, newsPoll } = this.#options
    const { locks } = (await backend.get()).ledger
    let checked: Promise<void> | undefined
    const check = async (): Promise<boolean> => {
      // Later changes are reported, because the chat is followed now.
      await (checked ??= newsPoll.check(running))
      if (await isMet()) return true
      // Reported when that process has released the chat.
      if (!(await locks.isFree(chat))) this.changedElsewhere(chat)
      return false
    }
    await events.until(chat, check, signal)
  }

  async close(): Promise<void> {
    this.#closed.abort()
    clearInterval(this.#interval)
    clearTimeout(this.#retry)
    await this.#reads.settled()
    await this.#reports.settled()
  }

  #isWatched(chat: ChatRef): boolean {
    return this.#options.events.isWatched(chat) || this.#options.hasListeners(chat)
  }

  #change(changed: ChangedChat): void {
    this.#add(changed)
    // Otherwise the end of the turn wakes this.
    if (!this.#options.turns.has(changed.chat)) this.#wake()
  }

  #add(changed: ChangedChat): void {
    const key = keyOf(changed.chat)
    const { isElsewhere = false, ended = [] } = this.#changed.get(key) ?? {}
    this.#changed.set(key, {
      chat: changed.chat,
      isElsewhere: changed.isElsewhere || isElsewhere,
      ended: [...ended, ...changed.ended],
    })
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
      if (this.#closed.signal.aborted) return
      if (this.#options.turns.has(changed.chat)) continue
      if (!this.#isWatched(changed.chat)) {
        this.#changed.delete(key)
        for (const { id } of changed.ended) this.#read.delete(id)
        continue
      }
      isLeft = !(await this.#report(key, changed)) || isLeft
    }
    if (!isLeft) this.#retryMs = LOCK_RETRY_MS
    else this.#retryLater()
  }

  /** Returns false if the chat cannot be reported yet. */
  async #report(key: string, changed: ChangedChat): Promise<boolean> {
    const { backend: lazy, events, turns, onEndStored, onError } = this.#options
    const { chat, isElsewhere } = changed
    try {
      const backend = await lazy.get()
      if (isElsewhere && !(await backend.ledger.locks.isFree(chat))) return false
      // Before the reads: a later change is reported again.
      this.#changed.delete(key)
      const ended: Approval[] = []
      for (const approval of changed.ended)
        if ((await readCallState(backend, approval)) === 'asked') ended.push(approval)
      const position = await backend.sessions.readPosition(toAppChat(backend, chat))
      if (turns.has(chat)) {
        this.#add(changed)
        return true
      }
      if (position !== changed.reported) events.stored(chat, position)
      for (const approval of changed.ended)
        if (!ended.includes(approval) && !this.#read.delete(approval.id)) onEndStored(approval)
      if (ended.length === 0) return true
      if (!this.#changed.has(key)) this.#changed.set(key, { ...changed, ended, reported: position })
      else this.#add({ ...changed, ended })
      return false
    } catch (error) {
      this.#add(changed)
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
      if (!this.#closed.signal.aborted) onError(error)
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

function hasEnded(state: ApprovalStateName): boolean {
  return state !== 'requested' && state !== 'approved' && state !== 'executing'
}

const NO_TAGS: ReadonlyMap<string, string> = new Map()

function toMap(tags: ReadonlyMap<string, string> | undefined): ReadonlyMap<string, string> {
  return tags ?? NO_TAGS
}

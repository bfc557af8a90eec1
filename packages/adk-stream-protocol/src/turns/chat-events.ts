import type { Approval, ApprovalStateName } from '../approvals/approval.ts'
import { maySee } from '../approvals/deciders.ts'
import type { Substitutes } from '../approvals/substitutes.ts'
import type { ChatEvent, FeedEvent } from '../protocol/server-views.ts'
import { defer } from '../shared/async.ts'
import type { ChatRef } from '../shared/chat-ref.ts'
import { keyOf, principalOf } from './turn-registry.ts'

/** Returns the principal of a feed with its present roles. */
type Reader = () => { readonly id: string; readonly roles?: readonly string[] }

type Follower = () => void

interface StartedTurn {
  readonly messageId: string
  /** The id of the turn. */
  readonly turn: string
}

/**
 * Checks a condition about a chat now, and whenever the chat or one of its approvals has changed, in any process. Resolves when it holds,
 * or when the signal aborts. Default: when the bridge closes. `running` approvals may have changed since they were read.
 */
export type UntilMet = (
  chat: ChatRef,
  isMet: () => Promise<boolean>,
  options?: { readonly running?: readonly Approval[]; readonly signal?: AbortSignal },
) => Promise<void>

/** Delivers the changes of chats and approvals to the feeds of this process. */
export class ChatEvents {
  /** The listeners of each chat. */
  readonly #ofChats = new Map<string, Set<(event: ChatEvent) => void>>()
  /** The listeners to all chats of a principal and to the approvals that it may see. */
  readonly #ofLists = new Map<(event: FeedEvent) => void, Reader>()
  /** The followers of each chat. */
  readonly #followers = new Map<string, Set<Follower>>()

  /** Whether there is a feed or a follower. */
  get watched(): boolean {
    return this.#ofChats.size + this.#ofLists.size + this.#followers.size > 0
  }

  chatChanged(chat: ChatRef): void {
    const { principalId, chatId } = chat
    this.#publishToOwner(principalId, { type: 'chat', chatId })
    this.#notifyFollowers(chat)
  }

  /** Reports that a turn of a chat started or resumed. */
  turnStarted(chat: ChatRef, { messageId, turn }: StartedTurn): void {
    this.#publishToChat(chat, { type: 'turn', messageId, turn })
    const { principalId, chatId } = chat
    this.#publishToOwner(principalId, { type: 'turn', chatId, messageId, turn })
  }

  /** Reports that what is stored of a chat has changed, and that no turn is running. */
  stored(chat: ChatRef, position: string): void {
    this.#publishToChat(chat, { type: 'stored', position })
    const { principalId, chatId } = chat
    this.#publishToOwner(principalId, { type: 'stored', chatId, position })
    this.#notifyFollowers(chat)
  }

  /** Reports a changed approval to its chat, to the principals that may see it, and to those who decide in their place. */
  async approvalChanged(
    approval: Pick<Approval, 'id' | 'chat' | 'terms'>,
    state: ApprovalStateName,
    substitutes?: Substitutes,
  ): Promise<void> {
    const { id: approvalId, chat } = approval
    const event = { type: 'approval', approvalId, state } as const
    const others: [(event: FeedEvent) => void, string][] = []
    this.#publishToChat(chat, event)
    for (const [listener, reader] of this.#ofLists) {
      const { id, roles = [] } = reader()
      if (!maySee(approval, { id, roles })) others.push([listener, id])
      // An approver does not learn the id of another principal's chat.
      else listener(id === chat.principalId ? { ...event, chatId: chat.chatId } : event)
    }
    this.chatChanged(chat)
    for (const [listener, id] of substitutes ? others : [])
      if ((await substitutes?.maySee(approval, id)) && this.#ofLists.has(listener)) listener(event)
  }

  /** Whether the chat has a follower, or a feed of the chat or of its owner is open. */
  isWatched(chat: ChatRef): boolean {
    if (this.#ofChats.has(keyOf(chat)) || this.#followers.has(keyOf(chat))) return true
    for (const reader of this.#ofLists.values()) if (reader().id === chat.principalId) return true
    return false
  }

  /** Returns the principals whose chats are watched or followed. */
  principals(): ReadonlySet<string> {
    const keys = [...this.#ofChats.keys(), ...this.#followers.keys()]
    const readers = [...this.#ofLists.values()].map((reader) => reader().id)
    return new Set([...keys.map(principalOf), ...readers])
  }

  /** Adds a listener for a chat. Returns a function that removes it. */
  watchChat(chat: ChatRef, listener: (event: ChatEvent) => void): () => void {
    return addTo(this.#ofChats, keyOf(chat), listener)
  }

  /** Adds a follower, which is called when a turn or an approval of a chat, or what is stored of it, has changed. Returns a function that removes it. */
  follow(chat: ChatRef, follower: Follower): () => void {
    return addTo(this.#followers, keyOf(chat), follower)
  }

  /** Adds a listener for the lists of a principal. Returns a function that removes it. */
  watchLists(reader: Reader, listener: (event: FeedEvent) => void): () => void {
    this.#ofLists.set(listener, reader)
    return () => this.#ofLists.delete(listener)
  }

  /**
   * Checks a condition now, and whenever the followers of a chat are called. Resolves with true when it holds, or with false when the
   * signal aborts before.
   */
  async until(chat: ChatRef, isMet: () => Promise<boolean>, signal: AbortSignal): Promise<boolean> {
    let changed = defer()
    const wake = (): void => changed.resolve()
    const unfollow = this.follow(chat, wake)
    signal.addEventListener('abort', wake, { once: true })
    try {
      while (!signal.aborted) {
        // Before the check, so that a change during the check is noticed.
        changed = defer()
        if (await isMet()) return true
        await changed.promise
      }
      return false
    } finally {
      unfollow()
      signal.removeEventListener('abort', wake)
    }
  }

  #notifyFollowers(chat: ChatRef): void {
    for (const follower of this.#followers.get(keyOf(chat)) ?? []) follower()
  }

  #publishToChat(chat: ChatRef, event: ChatEvent): void {
    for (const listener of this.#ofChats.get(keyOf(chat)) ?? []) listener(event)
  }

  #publishToOwner(principalId: string, event: FeedEvent): void {
    for (const [listener, reader] of this.#ofLists) if (reader().id === principalId) listener(event)
  }
}

/** Adds a listener to the set of a key. Returns a function that removes it, and an empty set with it. */
function addTo<Listener>(
  sets: Map<string, Set<Listener>>,
  key: string,
  listener: Listener,
): () => void {
  const listeners = sets.get(key) ?? new Set()
  sets.set(key, listeners.add(listener))
  return () => {
    listeners.delete(listener)
    // The key may have a new set meanwhile.
    if (listeners.size === 0 && sets.get(key) === listeners) sets.delete(key)
  }
}

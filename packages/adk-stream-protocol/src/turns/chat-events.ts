import type { Approval, ApprovalStateName } from '../approvals/approval.ts'
import { maySee } from '../approvals/deciders.ts'
import type { ChatEvent, FeedEvent } from '../protocol/server-views.ts'
import type { ChatRef } from '../shared/chat-ref.ts'
import { keyOf } from './turn-registry.ts'

/** Returns the principal of a feed with its present roles. */
type Reader = () => { readonly id: string; readonly roles?: readonly string[] }

/** Delivers the changes of chats and approvals to the feeds of this process. */
export class ChatEvents {
  /** The listeners of each chat. */
  readonly #ofChats = new Map<string, Set<(event: ChatEvent) => void>>()
  /** The listeners to all chats of a principal and to the approvals that it may see. */
  readonly #ofLists = new Map<(event: FeedEvent) => void, Reader>()

  chatChanged({ principalId, chatId }: ChatRef): void {
    this.#publishToOwner(principalId, { type: 'chat', chatId })
  }

  /** Reports that a turn of a chat started or resumed. */
  turnStarted(chat: ChatRef, messageId: string): void {
    this.#publishToChat(chat, { type: 'turn', messageId })
    const { principalId, chatId } = chat
    this.#publishToOwner(principalId, { type: 'turn', chatId, messageId })
  }

  /** Reports a changed approval to its chat and to the principals that may see it. */
  approvalChanged(
    approval: Pick<Approval, 'id' | 'chat' | 'terms'>,
    state: ApprovalStateName,
  ): void {
    const { id: approvalId, chat } = approval
    const event = { type: 'approval', approvalId, state } as const
    this.#publishToChat(chat, event)
    for (const [listener, reader] of this.#ofLists) {
      const { id, roles = [] } = reader()
      if (!maySee(approval, { id, roles })) continue
      // An approver does not learn the id of another principal's chat.
      listener(id === chat.principalId ? { ...event, chatId: chat.chatId } : event)
    }
    this.chatChanged(chat)
  }

  /** Whether a feed of the chat or of its owner is open. */
  isWatched(chat: ChatRef): boolean {
    if (this.#ofChats.has(keyOf(chat))) return true
    for (const reader of this.#ofLists.values()) if (reader().id === chat.principalId) return true
    return false
  }

  /** Adds a listener for a chat. Returns a function that removes it. */
  watchChat(chat: ChatRef, listener: (event: ChatEvent) => void): () => void {
    const key = keyOf(chat)
    const listeners = this.#ofChats.get(key) ?? new Set()
    this.#ofChats.set(key, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      // The chat may have a new set of listeners meanwhile.
      if (listeners.size === 0 && this.#ofChats.get(key) === listeners) this.#ofChats.delete(key)
    }
  }

  /** Adds a listener for the lists of a principal. Returns a function that removes it. */
  watchLists(reader: Reader, listener: (event: FeedEvent) => void): () => void {
    this.#ofLists.set(listener, reader)
    return () => this.#ofLists.delete(listener)
  }

  #publishToChat(chat: ChatRef, event: ChatEvent): void {
    for (const listener of this.#ofChats.get(keyOf(chat)) ?? []) listener(event)
  }

  #publishToOwner(principalId: string, event: FeedEvent): void {
    for (const [listener, reader] of this.#ofLists) if (reader().id === principalId) listener(event)
  }
}

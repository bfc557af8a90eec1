import type { Approval, ApprovalStateName } from '../approvals/approval.ts'
import { maySee } from '../approvals/next-approval.ts'
import type { FeedEvent } from '../protocol/server-views.ts'
import type { ChatRef } from '../shared/chat-ref.ts'

type Listener = (event: FeedEvent) => void

/** Returns the principal of a feed with its present roles. */
type Reader = () => { readonly id: string; readonly roles?: readonly string[] }

/** Delivers the events of a principal's chats, and of the approvals that it may see, to its listeners. */
export class ListEvents {
  readonly #watchers = new Map<Listener, Reader>()

  chatChanged({ principalId, chatId }: ChatRef): void {
    this.#publish(principalId, { type: 'chat', chatId })
  }

  turnStarted({ principalId, chatId }: ChatRef, messageId: string): void {
    this.#publish(principalId, { type: 'turn', chatId, messageId })
  }

  /** Reports a changed approval to the principals that may see it. */
  approvalChanged(
    approval: Pick<Approval, 'id' | 'chat' | 'terms'>,
    state: ApprovalStateName,
  ): void {
    const { id: approvalId, chat } = approval
    const event = { type: 'approval', approvalId, state } as const
    for (const [listener, reader] of this.#watchers) {
      const { id, roles = [] } = reader()
      if (!maySee(approval, { id, roles })) continue
      // An approver does not learn the id of another principal's chat.
      listener(id === chat.principalId ? { ...event, chatId: chat.chatId } : event)
    }
    this.chatChanged(chat)
  }

  /** Whether the owner of a chat has a listener. */
  isWatched({ principalId }: Pick<ChatRef, 'principalId'>): boolean {
    for (const reader of this.#watchers.values()) if (reader().id === principalId) return true
    return false
  }

  /** Adds a listener for a principal. Returns a function that removes it. */
  watch(reader: Reader, listener: Listener): () => void {
    this.#watchers.set(listener, reader)
    return () => this.#watchers.delete(listener)
  }

  #publish(principalId: string, event: FeedEvent): void {
    for (const [listener, reader] of this.#watchers)
      if (reader().id === principalId) listener(event)
  }
}

import type { Approval, ApprovalStateName } from '../approvals/approval.ts'
import { maySee } from '../approvals/next-approval.ts'
import type { PageEvent } from '../protocol/chat-summary.ts'
import type { ChatKey } from './turns.ts'

type Listener = (event: PageEvent) => void

/** Who reads a feed, with the roles of now. */
type Reader = () => { readonly id: string; readonly roles?: readonly string[] }

/** Who watches all that is theirs: their chats, and what they may decide. */
export class ListEvents {
  readonly #watchers = new Map<Listener, Reader>()

  chatChanged({ principalId, chatId }: ChatKey): void {
    this.#tell(principalId, { type: 'chat', chatId })
  }

  turnBegan({ principalId, chatId }: ChatKey, messageId: string): void {
    this.#tell(principalId, { type: 'turn', chatId, messageId })
  }

  /** An approval changes the list of those who may know of it; nobody else hears of it. */
  approvalChanged(
    approval: Pick<Approval, 'id' | 'chat' | 'terms'>,
    state: ApprovalStateName,
  ): void {
    const { id: approvalId, chat } = approval
    const event = { type: 'approval', approvalId, state } as const
    for (const [listener, reader] of this.#watchers) {
      const { id, roles = [] } = reader()
      if (!maySee(approval, { id, roles })) continue
      // Who decides in the chat of somebody else is not told which one it is.
      listener(id === chat.principalId ? { ...event, chatId: chat.chatId } : event)
    }
    this.chatChanged(chat)
  }

  /** Whether the owner of a chat watches their lists. */
  isWatched({ principalId }: Pick<ChatKey, 'principalId'>): boolean {
    for (const reader of this.#watchers.values()) if (reader().id === principalId) return true
    return false
  }

  /** Watches all that is a principal's; gives the way to stop. */
  watch(reader: Reader, listener: Listener): () => void {
    this.#watchers.set(listener, reader)
    return () => this.#watchers.delete(listener)
  }

  #tell(principalId: string, event: PageEvent): void {
    for (const [listener, reader] of this.#watchers)
      if (reader().id === principalId) listener(event)
  }
}

import type { Approval } from '../approvals/approval.ts'
import type { Decider } from '../approvals/next-approval.ts'
import { maySee } from '../approvals/next-approval.ts'
import type { ListEvent } from '../protocol/chat-summary.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { Quota } from './quota.ts'
import type { ChatKey } from './turns.ts'

type Listener = (event: ListEvent) => void

/** Who watches their lists: of chats, and of what they may decide. */
export class ListEvents {
  readonly #perPrincipal: Quota
  readonly #watchers = new Map<Listener, Decider>()

  constructor(perPrincipal: Quota) {
    this.#perPrincipal = perPrincipal
  }

  chatChanged({ principalId, chatId }: ChatKey): void {
    for (const [listener, { id }] of this.#watchers)
      if (id === principalId) listener({ type: 'chat', chatId })
  }

  /** An approval changes the list of those who may know of it; nobody else hears of it. */
  approvalChanged(approval: Approval): void {
    const event = { type: 'approval', approvalId: approval.id, state: approval.state.name } as const
    for (const [listener, watcher] of this.#watchers) if (maySee(approval, watcher)) listener(event)
    this.chatChanged(approval.chat)
  }

  /** Watches the lists of a principal; gives the way to stop. */
  watch(principal: Decider, listener: Listener): () => void {
    const release = this.#perPrincipal.take(principal.id)
    if (!release) throw new ProtocolError('too-many-watchers')
    this.#watchers.set(listener, principal)
    return () => {
      release()
      this.#watchers.delete(listener)
    }
  }
}

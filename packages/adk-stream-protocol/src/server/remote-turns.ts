import { setTimeout as delay } from 'node:timers/promises'

import type { Approval } from '../approvals/approval.ts'
import type { ChatEvents } from '../turns/chat-events.ts'
import type { ListEvents } from '../turns/list-events.ts'
import type { ChatKey } from '../turns/turns.ts'
import { keyOf } from '../turns/turns.ts'
import type { ApprovalChange } from './approval-news.ts'
import type { BackendOnDemand } from './backend.ts'
import type { LiveRuns } from './live-runs.ts'
import type { TurnDesk } from './turn-desk.ts'

export interface ElsewhereOptions {
  readonly backend: BackendOnDemand
  readonly turnDesk: Pick<TurnDesk, 'callState' | 'retell'>
  readonly runs: LiveRuns | undefined
  readonly events: ChatEvents
  readonly lists: ListEvents
  readonly intervalMs: number
  readonly onError: (error: unknown) => void
}

/** A message that another process goes on with. */
interface Followed {
  readonly chat: ChatKey
  readonly messageId: string
  /** The approvals of it that changed. */
  readonly approvals: Map<string, Approval>
  /** Whether a client here has read it by a request of its own. */
  isRead: boolean
}

/** How often a message must be found at rest. Between two turns of one message, its chat is free for a moment. */
const LOOKS = 2

/** Tells clients here what another process did by a decision: when its message is at rest, it is told anew. */
export class Elsewhere {
  readonly #options: ElsewhereOptions
  readonly #followed = new Map<string, Followed>()
  readonly #closed = new AbortController()

  constructor(options: ElsewhereOptions) {
    this.#options = options
  }

  /** Another process changed an approval. */
  changed({ approval, state }: ApprovalChange): void {
    const { runs, onError } = this.#options
    // A live conversation here goes on by itself.
    if (runs?.holds(approval)) return runs.approvalChanged(approval)
    if (state === 'requested' || state === 'approved') return
    const { chat, messageId } = approval
    if (!this.#isWatched(chat)) return
    const key = `${keyOf(chat)}/${messageId}`
    const known = this.#followed.get(key)
    if (known) {
      known.approvals.set(approval.id, approval)
      return
    }
    const approvals = new Map([[approval.id, approval]])
    const followed = { chat, messageId, approvals, isRead: false }
    this.#followed.set(key, followed)
    // Nothing waits for it here.
    void this.#follow(followed)
      .catch(onError)
      .finally(() => this.#followed.delete(key))
  }

  /** A client here reads a message by a request of its own: it is not told a second time. */
  noteRead(chat: ChatKey, messageId: string): void {
    const followed = this.#followed.get(`${keyOf(chat)}/${messageId}`)
    if (followed) followed.isRead = true
  }

  close(): void {
    this.#closed.abort()
  }

  async #follow(followed: Followed): Promise<void> {
    const { events, lists, runs, turnDesk, intervalMs } = this.#options
    const { chat, messageId } = followed
    let looks = 0
    while (looks < LOOKS) {
      await delay(intervalMs, undefined, { ref: false })
      if (this.#closed.signal.aborted || !this.#isWatched(chat)) return
      looks = (await this.#isAtRest(followed)) ? looks + 1 : 0
    }
    events.tell(chat, { type: 'turn', messageId })
    lists.turnBegan(chat, messageId)
    lists.chatChanged(chat)
    if (followed.isRead || runs?.hasListeners(chat) !== true) return
    runs.show(chat, await turnDesk.retell(chat, messageId))
  }

  /** Whether the conversation shows what came of the approvals, and no other process works in it. */
  async #isAtRest({ chat, approvals }: Followed): Promise<boolean> {
    const { backend, turnDesk } = this.#options
    const { ledger } = await backend.get()
    if ((await ledger.heldByOthers(chat.principalId)).includes(chat.chatId)) return false
    for (const approval of approvals.values())
      if ((await turnDesk.callState(approval)) === 'asked') return false
    return true
  }

  #isWatched(chat: ChatKey): boolean {
    const { events, lists, runs } = this.#options
    return events.isWatched(chat) || lists.isWatched(chat) || runs?.hasListeners(chat) === true
  }
}

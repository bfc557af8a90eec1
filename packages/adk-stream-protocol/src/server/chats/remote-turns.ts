import { setTimeout as delay } from 'node:timers/promises'

import type { Approval } from '../../approvals/approval.ts'
import type { ChatEvents } from '../../turns/chat-events.ts'
import { keyOf } from '../../turns/turn-registry.ts'
import type { ApprovalChange } from '../feeds/approval-news.ts'
import type { LazyBackend } from './backend.ts'
import type { LiveRuns } from './live-runs.ts'
import type { TurnService } from './turn-service.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'

export interface RemoteTurnsOptions {
  readonly backend: LazyBackend
  readonly turnService: Pick<TurnService, 'callState' | 'replay'>
  readonly runs: LiveRuns | undefined
  readonly events: ChatEvents
  readonly intervalMs: number
  readonly onError: (error: unknown) => void
}

/** A message that another process continues. */
interface RemoteTurn {
  readonly chat: ChatRef
  readonly messageId: string
  /** Its approvals that have changed. */
  readonly approvals: Map<string, Approval>
}

/** How many consecutive checks must find the message complete. Between two turns of one message, the chat is unlocked for a moment. */
const CHECKS = 2

/** How many approvals are remembered as read by the requests that decided them. */
const MAX_READ = 10_000

/** Reports turns that another process continued after a decision: clients of this process get the message again when it is complete. */
export class RemoteTurns {
  readonly #options: RemoteTurnsOptions
  readonly #followed = new Map<string, RemoteTurn>()
  /** Approvals whose outcome a client of this process reads by its own request. */
  readonly #read = new Set<string>()
  readonly #closed = new AbortController()

  constructor(options: RemoteTurnsOptions) {
    this.#options = options
  }

  /** Another process changed an approval. */
  changed({ approval, state }: ApprovalChange): void {
    const { runs, onError } = this.#options
    // The live session of this process continues the message itself.
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
    const followed = { chat, messageId, approvals }
    this.#followed.set(key, followed)
    // Nothing awaits this work; errors are reported.
    void this.#follow(followed)
      .catch(onError)
      .finally(() => this.#followed.delete(key))
  }

  /**
   * Records that a request of this process reads the outcome of these approvals, so that its client does not receive the message a
   * second time. Call it before waiting for the outcome. Returns a function that takes the record back, for a request that fails.
   */
  noteRead(approvalIds: readonly string[]): () => void {
    for (const id of approvalIds) this.#read.add(id)
    for (const oldest of this.#read) {
      if (this.#read.size <= MAX_READ) break
      this.#read.delete(oldest)
    }
    return () => {
      for (const id of approvalIds) this.#read.delete(id)
    }
  }

  close(): void {
    this.#closed.abort()
  }

  async #follow(followed: RemoteTurn): Promise<void> {
    const { events, runs, turnService, intervalMs } = this.#options
    const { chat, messageId, approvals } = followed
    let checks = 0
    while (checks < CHECKS) {
      await delay(intervalMs, undefined, { ref: false })
      if (this.#closed.signal.aborted || !this.#isWatched(chat)) return
      checks = (await this.#isComplete(followed)) ? checks + 1 : 0
    }
    events.turnStarted(chat, messageId)
    events.chatChanged(chat)
    const isRead = [...approvals.keys()].every((id) => this.#read.has(id))
    if (isRead || runs?.hasListeners(chat) !== true) return
    runs.show(chat, await turnService.replay(chat, messageId))
  }

  /** Whether the conversation shows the outcome of all approvals, and no other process holds the chat. */
  async #isComplete({ chat, approvals }: RemoteTurn): Promise<boolean> {
    const { backend, turnService } = this.#options
    const { ledger } = await backend.get()
    if ((await ledger.listLockedByOthers(chat.principalId)).includes(chat.chatId)) return false
    for (const approval of approvals.values())
      if ((await turnService.callState(approval)) === 'asked') return false
    return true
  }

  #isWatched(chat: ChatRef): boolean {
    const { events, runs } = this.#options
    return events.isWatched(chat) || runs?.hasListeners(chat) === true
  }
}

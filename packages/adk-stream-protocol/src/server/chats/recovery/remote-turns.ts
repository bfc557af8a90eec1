import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

import type { Approval } from '../../../approvals/approval.ts'
import type { TurnChange } from '../../../relay/relay.ts'
import { keepNewest } from '../../../shared/collections.ts'
import type { ChatEvents } from '../../../turns/chat-events.ts'
import { keyOf } from '../../../turns/turn-registry.ts'
import type { ApprovalChange } from '../../feeds/approval-news.ts'
import type { LazyBackend } from '../backend.ts'
import type { LiveRuns } from '../live-runs.ts'
import { readCallState } from '../turns/stored-calls.ts'
import type { TurnService } from '../turns/turn-service.ts'
import type { TurnsElsewhere } from '../turns/turns-elsewhere.ts'
import type { AppChatRef, ChatRef } from '../../../shared/chat-ref.ts'

export interface RemoteTurnsOptions {
  readonly backend: LazyBackend
  readonly turnService: Pick<TurnService, 'replay'>
  readonly runs: LiveRuns | undefined
  readonly events: ChatEvents
  /** The running turns of other processes. */
  readonly elsewhere: Pick<TurnsElsewhere, 'open' | 'hasRelay'>
  /** Whether another process has the live session of a chat. */
  readonly isLiveElsewhere: (chat: AppChatRef) => Promise<boolean>
  readonly intervalMs: number
  readonly onError: (error: unknown) => void
}

/** A message that another process continues. */
interface RemoteTurn {
  readonly chat: ChatRef
  readonly messageId: string
  /** Its approvals that have changed. */
  readonly approvals: Map<string, Approval>
  /** When the last of them changed. */
  changedAt: number
}

/** How many consecutive checks must find the message complete. Between two turns of one message, the chat is unlocked for a moment. */
const CHECKS = 2

/** How many approvals are remembered as read by the requests that decided them, and how many turns of the relay. */
const MAX_READ = 10_000

/** With a relay, messages are read in their turns. A slower check finds results that were stored without a turn. */
const SLOWER = 4

/** The end of a turn and the last change in it are reported within this time, in either order. */
const TOGETHER_MS = 1_000

/** A request that responds to a message reads the turn that starts next in this time. */
const READS_MS = 10_000

/** Reports turns that another process continued after a decision: clients of this process get the message again when it is complete. */
export class RemoteTurns {
  readonly #options: RemoteTurnsOptions
  readonly #followed = new Map<string, RemoteTurn>()
  /** Approvals whose outcome a client of this process reads by its own request. */
  readonly #read = new Set<string>()
  /** The newest turn of a message that the relay has reported: when it ended, `Infinity` while it runs. */
  readonly #relayed = new Map<string, number>()
  /** Messages whose next turn a client of this process reads by its own request: since when. */
  readonly #awaited = new Map<string, number>()
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
    const key = toKey(chat, messageId)
    const changedAt = performance.now()
    const known = this.#followed.get(key)
    if (known) {
      known.approvals.set(approval.id, approval)
      known.changedAt = changedAt
      return
    }
    const approvals = new Map([[approval.id, approval]])
    const followed = { chat, messageId, approvals, changedAt }
    this.#followed.set(key, followed)
    // Nothing awaits this work; errors are reported.
    void this.#follow(followed)
      .catch(onError)
      .finally(() => this.#followed.delete(key))
  }

  /** The relay reports that a turn of another process has started or ended. Clients that watch its live session here read it. */
  turnChanged({ chat, messageId, ended }: TurnChange): void {
    const key = toKey(chat, messageId)
    const now = performance.now()
    this.#relayed.delete(key)
    this.#relayed.set(key, ended ? now : Infinity)
    keepNewest(this.#relayed, MAX_READ)
    if (ended || this.#options.runs?.hasListeners(chat) !== true) return
    const awaitedAt = this.#awaited.get(key) ?? -Infinity
    this.#awaited.delete(key)
    if (now - awaitedAt < READS_MS) return
    void this.#show(chat, messageId).catch(this.#options.onError)
  }

  async #show(chat: AppChatRef, messageId: string): Promise<void> {
    const { runs, elsewhere, turnService, isLiveElsewhere } = this.#options
    if (!(await isLiveElsewhere(chat))) return
    const running = await elsewhere.open(chat)
    // A short turn has ended by now.
    const isRunning = running?.messageId === messageId
    runs?.show(chat, isRunning ? running : await turnService.replay(chat, messageId))
  }

  /**
   * Records that a request of this process reads the outcome of these approvals, so that its client does not receive the message a
   * second time. Call it before waiting for the outcome. Returns a function that takes the record back, for a request that fails.
   */
  noteRead(chat: ChatRef, messageId: string, approvalIds: readonly string[]): () => void {
    const key = toKey(chat, messageId)
    for (const id of approvalIds) this.#read.add(id)
    keepNewest(this.#read, MAX_READ)
    this.#awaited.set(key, performance.now())
    keepNewest(this.#awaited, MAX_READ)
    return () => {
      for (const id of approvalIds) this.#read.delete(id)
      this.#awaited.delete(key)
    }
  }

  close(): void {
    this.#closed.abort()
  }

  async #follow(followed: RemoteTurn): Promise<void> {
    const { events, elsewhere } = this.#options
    const intervalMs = this.#options.intervalMs * (elsewhere.hasRelay ? SLOWER : 1)
    const { chat, messageId, approvals } = followed
    let checks = 0
    while (checks < CHECKS) {
      await delay(intervalMs, undefined, { ref: false })
      if (this.#closed.signal.aborted || !this.#isWatched(chat)) return
      checks = (await this.#isComplete(followed)) ? checks + 1 : 0
    }
    events.messageStored(chat)
    const relayed = this.#relayed.get(toKey(chat, messageId)) ?? -Infinity
    if (relayed > followed.changedAt - TOGETHER_MS) return
    const isRead = [...approvals.keys()].every((id) => this.#read.has(id))
    await showStored(this.#options, chat, { messageId, isRead })
  }

  /** Whether the conversation shows the outcome of all approvals, and no other process holds the chat. */
  async #isComplete({ chat, approvals }: RemoteTurn): Promise<boolean> {
    const backend = await this.#options.backend.get()
    if (await backend.ledger.locks.isLockedElsewhere(chat)) return false
    for (const approval of approvals.values())
      if ((await readCallState(backend, approval)) === 'asked') return false
    return true
  }

  #isWatched(chat: ChatRef): boolean {
    const { events, runs } = this.#options
    return events.isWatched(chat) || runs?.hasListeners(chat) === true
  }
}

function toKey(chat: ChatRef, messageId: string): string {
  return `${keyOf(chat)}/${messageId}`
}

interface ShowStoredParts {
  readonly events: Pick<ChatEvents, 'turnStarted' | 'chatChanged'>
  readonly runs: Pick<LiveRuns, 'hasListeners' | 'show'> | undefined
  readonly turnService: Pick<TurnService, 'replay'>
}

/**
 * Notifies the clients of this process that a message has changed although no turn of this process has streamed the change. Feeds report a
 * turn, and clients that watch the chat on a socket receive the whole message, unless `isRead` says that they read it by a request.
 */
export async function showStored(
  { events, runs, turnService }: ShowStoredParts,
  chat: ChatRef,
  { messageId, isRead = false }: { readonly messageId: string; readonly isRead?: boolean },
): Promise<void> {
  events.turnStarted(chat, { messageId, turn: randomUUID() })
  events.chatChanged(chat)
  if (isRead || runs?.hasListeners(chat) !== true) return
  runs.show(chat, await turnService.replay(chat, messageId))
}

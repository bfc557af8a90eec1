import { setTimeout as delay } from 'node:timers/promises'

import { z } from 'zod'

import type { Approval } from '../../approvals/approval.ts'
import type { OutputResponse } from '../../protocol/read-responses.ts'
import { RequestChat } from '../../relay/relay-signals.ts'
import { keepNewest } from '../../shared/collections.ts'
import type { AppChatRef, ChatRef } from '../../shared/chat-ref.ts'
import type { Backend } from './backend.ts'
import { toAppChat } from './backend.ts'
import type { CallRef } from './host/stored-calls.ts'
import type { AskProcess, LiveLeases } from './live-leases.ts'
import { RELEASE } from './live-leases.ts'
import type { LiveRuns } from './live-runs.ts'

interface LiveOwnersOptions {
  readonly backend: { readonly get: () => Promise<Pick<Backend, 'ledger'>> }
  /** Returns the state of a call in the stored conversation, see `readCallState`. */
  readonly callState: (call: CallRef) => Promise<string | undefined>
  /** The live sessions of this process. Undefined without the option `live`. */
  readonly runs:
    | Pick<LiveRuns, 'holds' | 'find' | 'approvalChanged' | 'whenStarted' | 'release'>
    | undefined
  readonly leases: Pick<LiveLeases, 'findOther'>
  /** Another process has recorded a decision about a call of this one. Feeds must report it before the call starts. */
  readonly onDecided: (approval: Approval) => void
  /** Returns undefined if the store has no signals. */
  readonly ask: () => AskProcess | undefined
}

/** How long the process that owns the live session may take to react to a decision. */
const REACTION_MS = 1_000
const POLL_MS = 50
/** Every restart creates a process with a new id, so the ids of dead processes would accumulate. */
const MAX_SILENT = 100

const DECIDED = 'live-decided'
const OUTPUT = 'live-output'
const HOLDS = 'live-holds'

const ReleaseRequest = z.object({
  chat: RequestChat,
  need: z.enum(['input', 'speech', 'watch']),
})
const ApprovalRequest = z.object({ approvalId: z.string() })
const OutputRequest = z.object({
  chat: RequestChat,
  output: z.object({ toolCallId: z.string(), result: z.unknown() }),
})

/**
 * Live sessions of other processes. The process that has the session runs its calls: its model waits for the result, and its clients
 * read the message. If it does not react, for example because it crashed, this process runs the call.
 */
export class LiveOwners {
  readonly #options: LiveOwnersOptions
  /** Processes that did not answer when they were last asked. */
  readonly #silent = new Set<string>()
  readonly #closed = new AbortController()

  constructor(options: LiveOwnersOptions) {
    this.#options = options
  }

  /** Answers a request of another process about a live session of this one. */
  async answer(kind: string, body: unknown): Promise<unknown> {
    switch (kind) {
      case RELEASE: {
        const { chat, need } = ReleaseRequest.parse(body)
        return (await this.#options.runs?.release(chat, need)) ?? 'released'
      }
      case DECIDED:
        return this.#takeDecision(ApprovalRequest.parse(body).approvalId)
      case HOLDS: {
        const { ledger } = await this.#options.backend.get()
        const approval = await ledger.get(ApprovalRequest.parse(body).approvalId)
        return approval !== undefined && this.#options.runs?.holds(approval) === true
      }
      case OUTPUT: {
        const { chat, output } = OutputRequest.parse(body)
        const { calls } = this.#options.runs?.find(chat) ?? {}
        // Not awaited: the other process reads when the output is stored, however long that takes.
        return calls?.submitOutput(output as OutputResponse) !== undefined
      }
      default:
        return undefined
    }
  }

  /** Whether another process has the live session of a chat. */
  async isElsewhere(chat: AppChatRef): Promise<boolean> {
    return (await this.#options.leases.findOther(chat)) !== undefined
  }

  /** Leaves a decided approval to the process that has its live session. Returns false if there is none, or if it does not react. */
  async leave(approval: Approval): Promise<boolean> {
    const { ledger } = await this.#options.backend.get()
    const { liveWorker } = approval
    if (liveWorker === undefined) return false
    const ask = this.#options.ask()
    if (ask) return this.#leaveToOwner(approval, ask)
    if (liveWorker === ledger.worker || (await ledger.hasClosed(liveWorker))) return false
    return this.#poll(REACTION_MS, () => this.#isTaken(approval))
  }

  /**
   * Whether a live session, here or in another process, has the call of an approval. Does not wait for a session that is being started,
   * so the caller may hold the chat: such a session takes calls only when the chat is free.
   */
  async holds(approval: Approval): Promise<boolean> {
    const { runs, leases } = this.#options
    if (runs?.holds(approval)) return true
    const ask = this.#options.ask()
    const { chat, id: approvalId, liveWorker } = approval
    const { ledger } = await this.#options.backend.get()
    if (!ask || liveWorker === undefined || !(await ledger.locks.isLiveElsewhere(chat)))
      return false
    const owner = await leases.findOther(chat)
    // LV100: the call does not wait for a process that has not reacted to the decision.
    if (owner === undefined || this.#silent.has(owner)) return false
    try {
      const request = { kind: HOLDS, body: { approvalId }, timeoutMs: REACTION_MS }
      return (await ask(owner, request)) === true
    } catch {
      this.#noteSilent(owner)
      return false
    }
  }

  /** Gives the output of a client to the process that has the live session of its call. Returns whether it took the output. */
  async submitOutput(chat: ChatRef, output: OutputResponse): Promise<boolean> {
    const ask = this.#options.ask()
    if (!ask) return false
    const { ledger } = await this.#options.backend.get()
    const key = toAppChat(ledger, chat)
    const owner = await this.#options.leases.findOther(key)
    if (owner === undefined) return false
    const body = { chat: key, output }
    try {
      return (await ask(owner, { kind: OUTPUT, body, timeoutMs: REACTION_MS })) === true
    } catch {
      // It has crashed. The call is stored and continues here.
      return false
    }
  }

  /** Resolves when the conversation shows the outcome of an approval, or after two leases. */
  async untilReported(approval: Approval): Promise<void> {
    const { ledger } = await this.#options.backend.get()
    await this.#poll(2 * ledger.leaseMs, () => this.#isReported(approval))
  }

  /** Resolves when the conversation contains the output of a client, or with false after two leases. */
  async untilStored(call: CallRef): Promise<boolean> {
    const { ledger } = await this.#options.backend.get()
    return this.#poll(
      2 * ledger.leaseMs,
      async () => (await this.#options.callState(call)) !== 'waiting',
    )
  }

  close(): void {
    this.#closed.abort()
  }

  /** Asks the process that has the live session, and the next one if the session moves meanwhile. */
  async #leaveToOwner(approval: Approval, ask: AskProcess): Promise<boolean> {
    const { runs } = this.#options
    const { ledger } = await this.#options.backend.get()
    const refused = new Set<string>()
    const until = performance.now() + REACTION_MS
    while (!this.#closed.signal.aborted) {
      // This process may be about to take the session over.
      await runs?.whenStarted(approval.chat)
      if (runs?.holds(approval)) {
        runs.approvalChanged(approval)
        return true
      }
      const owner = await ledger.locks.findLiveOwner(approval.chat)
      const timeoutMs = until - performance.now()
      if (owner === undefined || owner === ledger.worker || refused.has(owner) || timeoutMs <= 0)
        return false
      try {
        const request = { kind: DECIDED, body: { approvalId: approval.id }, timeoutMs }
        const isTaken = await ask(owner, request)
        this.#silent.delete(owner)
        if (isTaken === true) return true
      } catch {
        this.#noteSilent(owner)
        return false
      }
      refused.add(owner)
    }
    return false
  }

  #noteSilent(owner: string): void {
    this.#silent.add(owner)
    keepNewest(this.#silent, MAX_SILENT)
  }

  /** Continues a call after a decision that another process has recorded. Returns whether its live session is here. */
  async #takeDecision(approvalId: string): Promise<boolean> {
    const { runs, backend } = this.#options
    const { ledger } = await backend.get()
    const approval = await ledger.get(approvalId)
    if (!approval || !runs) return false
    await runs.whenStarted(approval.chat)
    if (!runs.holds(approval)) return false
    this.#options.onDecided(approval)
    runs.approvalChanged(approval)
    return true
  }

  async #poll(forMs: number, isDone: () => Promise<boolean>): Promise<boolean> {
    const { signal } = this.#closed
    const until = performance.now() + forMs
    while (!signal.aborted) {
      if (await isDone()) return true
      if (performance.now() > until) return false
      await delay(POLL_MS)
    }
    return false
  }

  /** Whether the owner has reacted: an approved call has started, or the conversation shows that the call will not run. */
  async #isTaken(approval: Approval): Promise<boolean> {
    if (approval.state.name !== 'approved') return this.#isReported(approval)
    const { ledger } = await this.#options.backend.get()
    const now = await ledger.get(approval.id)
    return now?.state.name !== 'approved'
  }

  async #isReported(approval: Approval): Promise<boolean> {
    return (await this.#options.callState(approval)) !== 'asked'
  }
}

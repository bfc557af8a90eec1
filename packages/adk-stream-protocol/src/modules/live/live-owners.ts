import type { Approval } from '../../approvals/approval.ts'
import type { OutputResponse } from '../../protocol/read-responses.ts'
import type { AskServer, ServerRequestHandler } from '../../relay/server-requests.ts'
import { onRequest } from '../../relay/server-requests.ts'
import { keepNewest } from '../../shared/collections.ts'
import type { AppChatRef, ChatRef } from '../../shared/chat-ref.ts'
import type { Backend } from '../../server/chats/backend.ts'
import { toAppChat } from '../../server/chats/backend.ts'
import type { CallRef } from '../../server/chats/host/stored-calls.ts'
import type { LiveLeases } from './live-leases.ts'
import { HAS_CALL, RELEASE, TAKE_DECISION, TAKE_OUTPUT, WHEN_OPENED } from './live-requests.ts'
import type { LiveRuns } from './live-runs.ts'
import type { OtherServers } from '../../server/chats/other-servers.ts'
import type { ChatEvents } from '../../turns/chat-events.ts'

interface LiveOwnersOptions {
  readonly backend: { readonly get: () => Promise<Pick<Backend, 'ledger'>> }
  readonly servers: Pick<OtherServers, 'ask' | 'askOwner'>
  readonly leases: Pick<LiveLeases, 'findOther'>
  readonly events: Pick<ChatEvents, 'until'>
  /** Returns the state of a call in the stored conversation, see `readCallState`. */
  readonly callState: (call: CallRef) => Promise<string | undefined>
  /** The live sessions of this process. Undefined without the option `live`. */
  readonly runs:
    | Pick<
        LiveRuns,
        'holds' | 'find' | 'approvalChanged' | 'whenStarted' | 'whenOpened' | 'release'
      >
    | undefined
  /** Another process has recorded a decision about a call of this one. Feeds must report it before the call starts. */
  readonly onDecided: (approval: Approval) => void
}

/**
 * How long the process that owns the live session may take to react to a decision. Then this process runs the call (LV100). If both try,
 * the ledger lets one of them claim it.
 */
const REACTION_MS = 1_000
/** Every restart creates a process with a new id, so the ids of dead processes would accumulate. */
const MAX_SILENT = 100

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

  /** Handles the requests of other processes about the live sessions of this one. */
  get handlers(): readonly ServerRequestHandler[] {
    const { runs, backend } = this.#options
    return [
      onRequest(WHEN_OPENED, async ({ chat }) => {
        await runs?.whenOpened(chat)
        return true
      }),
      onRequest(
        RELEASE,
        async ({ chat, ...request }) => (await runs?.release(chat, request)) ?? 'released',
      ),
      onRequest(TAKE_DECISION, ({ approvalId }) => this.#takeDecision(approvalId)),
      onRequest(HAS_CALL, async ({ approvalId }) => {
        const { ledger } = await backend.get()
        const approval = await ledger.get(approvalId)
        return approval !== undefined && runs?.holds(approval) === true
      }),
      onRequest(TAKE_OUTPUT, async ({ chat, output, untilStored }) => {
        const submitted = runs?.find(chat)?.calls?.submitOutput(output as OutputResponse)
        if (untilStored) await submitted?.isStored
        return submitted !== undefined
      }),
    ]
  }

  /** Whether this process may start the call of an approval: no other one has the live session in which the call waits. */
  async mayStart({ waitingWorker, chat }: Approval): Promise<boolean> {
    const { leases } = this.#options
    return waitingWorker === undefined || (await leases.findOther(chat)) === undefined
  }

  /** RL22: resolves when the process with the live session of a chat has opened the turns of all messages that it has received. */
  async whenOpened(chat: AppChatRef): Promise<void> {
    await this.#options.servers.askOwner(chat, 'open-run', WHEN_OPENED, { chat })
  }

  /** Leaves a decided approval to the process that has its live session. Returns false if there is none, or if it does not react. */
  async leave(approval: Approval): Promise<boolean> {
    const { backend, servers, events } = this.#options
    const { ledger } = await backend.get()
    const { waitingWorker, chat } = approval
    if (waitingWorker === undefined) return false
    if (servers.ask) return this.#leaveToOwner(approval, servers.ask)
    if (ledger.waitsHere(approval) || (await ledger.hasClosed(waitingWorker))) return false
    const signal = AbortSignal.any([this.#closed.signal, AbortSignal.timeout(REACTION_MS)])
    return events.until(chat, () => this.#isTaken(approval), signal)
  }

  /**
   * Whether a live session, here or in another process, has the call of an approval. Does not wait for a session that is being started,
   * so the caller may hold the chat: such a session takes calls only when the chat is free.
   */
  async holds(approval: Approval): Promise<boolean> {
    const { runs, servers, leases, backend } = this.#options
    if (runs?.holds(approval)) return true
    const { chat, id: approvalId, waitingWorker } = approval
    if (!servers.ask || waitingWorker === undefined) return false
    const { ledger } = await backend.get()
    if (await ledger.locks.isFree(chat, 'open-run')) return false
    const owner = await leases.findOther(chat)
    // LV100: the call does not wait for a process that has not reacted to the decision.
    if (owner === undefined || this.#silent.has(owner)) return false
    try {
      return await servers.ask(owner, HAS_CALL, { approvalId }, REACTION_MS)
    } catch {
      this.#noteSilent(owner)
      return false
    }
  }

  /** Gives the output of a client to the process that has the live session of its call. Returns whether it took the output. */
  async submitOutput(chat: ChatRef, output: OutputResponse): Promise<boolean> {
    const { backend, servers, leases } = this.#options
    const { ledger } = await backend.get()
    const key = toAppChat(ledger, chat)
    const owner = await leases.findOther(key)
    if (!servers.ask || owner === undefined) return false
    const body = { chat: key, output, untilStored: false }
    try {
      return await servers.ask(owner, TAKE_OUTPUT, body, REACTION_MS)
    } catch {
      // It has crashed. The call is stored and continues here.
      return false
    }
  }

  /** Resolves when the conversation contains an output that another process has taken. Returns false if that process has lost it. */
  async untilStored(call: CallRef, output: OutputResponse): Promise<boolean> {
    const { chat } = call
    const body = { chat, output, untilStored: true }
    await this.#options.servers.askOwner(chat, 'open-run', TAKE_OUTPUT, body)
    return (await this.#options.callState(call)) !== 'waiting'
  }

  /** Whether the conversation shows the outcomes of approvals. */
  async areReported(approvals: readonly Approval[]): Promise<boolean> {
    for (const approval of approvals) if (!(await this.#isReported(approval))) return false
    return true
  }

  close(): void {
    this.#closed.abort()
  }

  /** Asks the process that has the live session, and the next one if the session moves meanwhile. */
  async #leaveToOwner(approval: Approval, ask: AskServer): Promise<boolean> {
    const { runs, leases } = this.#options
    const { chat, id: approvalId } = approval
    const refused = new Set<string>()
    const until = performance.now() + REACTION_MS
    while (!this.#closed.signal.aborted) {
      // This process may be about to take the session over.
      await runs?.whenStarted(chat)
      if (runs?.approvalChanged(approval)) return true
      const worker = await leases.findOther(chat)
      const timeoutMs = until - performance.now()
      if (worker === undefined || refused.has(worker) || timeoutMs <= 0) return false
      try {
        const isTaken = await ask(worker, TAKE_DECISION, { approvalId }, timeoutMs)
        this.#silent.delete(worker)
        if (isTaken) return true
      } catch {
        this.#noteSilent(worker)
        return false
      }
      refused.add(worker)
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
    return runs.approvalChanged(approval)
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

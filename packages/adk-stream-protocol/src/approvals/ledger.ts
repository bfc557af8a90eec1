import { randomUUID } from 'node:crypto'
import type { Approval, ApprovalChat, ApprovalTerms } from './approval.ts'
import { ApprovalError } from './approval-error.ts'
import type {
  ApprovalFilter,
  ApprovalStore,
  AuditFilter,
  ChatLockHolder,
  LeaseRenewal,
  PendingQuota,
  UnreportedFilter,
} from './approval-store.ts'
import type { AuditRecord } from './audit-entry.ts'
import { type Call, digestCall } from './digest.ts'
import {
  type ApprovalCommand,
  type Decider,
  type Decision,
  maySee,
  nextApproval,
} from './next-approval.ts'
import { plainJson } from './plain-json.ts'
import { RecentApprovals } from './recent-approvals.ts'
import { isRefusal, type Refusal } from './refusal.ts'

export interface LedgerOptions {
  readonly store: ApprovalStore
  /** The application whose approvals these are: principals of another one are strangers here. */
  readonly appName: string
  /** This process, for leases. Default: a random name. */
  readonly worker?: string
  /** How many approvals may wait at once. Default 16 in a chat, 100 of a principal. */
  readonly quota?: Partial<PendingQuota>
  /** How long a worker that gives no sign keeps what it runs, in ms. Default 15,000. */
  readonly leaseMs?: number
  /** How long the event loop of this process may be blocked before it loses what it runs, in ms. Default 8 leases. */
  readonly maxBlockedMs?: number
  /** Hears of listeners that throw, and of what goes wrong where nobody waits for an answer. Default: nobody. */
  readonly onError?: (error: unknown) => void
}

export interface ApprovalRequest extends Call {
  /** Default: a random one. */
  readonly id?: string
  readonly messageId: string
  readonly terms: ApprovalTerms
  readonly deadlineMs: number
  /** Whether a live conversation of this worker made the call. Default false. */
  readonly live?: boolean
}

/** The approvals of an application: every change is one compare-and-set in the store, with its line in the audit record. */
export class Ledger {
  readonly worker: string
  readonly appName: string
  readonly leaseMs: number
  readonly #store: ApprovalStore
  readonly #quota: PendingQuota
  readonly #onError: (error: unknown) => void
  readonly #recent = new RecentApprovals()
  readonly #listeners = new Set<(approval: Approval) => void>()
  /** Calls that this worker has claimed and whose end is not stored; with what is still to be stored of one that has ended. */
  readonly #running = new Map<string, ApprovalCommand | undefined>()
  /** The tokens of the chats that this worker has locked. */
  readonly #locks = new Map<string, string>()
  readonly #maxBlockedMs: number
  #renewal: LeaseRenewal | undefined

  constructor({ store, appName, worker = randomUUID(), ...options }: LedgerOptions) {
    this.#store = store
    this.appName = appName
    this.worker = worker
    this.leaseMs = options.leaseMs ?? 15_000
    this.#maxBlockedMs = options.maxBlockedMs ?? this.leaseMs * 8
    this.#quota = { perChat: 16, perPrincipal: 100, ...options.quota }
    this.#onError = options.onError ?? (() => {})
  }

  /** Asks for a decision about a call. The same call asked again gives the approval it has. */
  async request(request: ApprovalRequest): Promise<Approval | Refusal> {
    const { id = randomUUID(), messageId, toolCallId, toolName, deadlineMs } = request
    const { appName, principalId, chatId } = request.chat
    const chat = { appName, principalId, chatId }
    const args = plainJson('`args`', request.args)
    const terms = plainJson('`terms`', request.terms)
    const digest = digestCall({ chat, toolCallId, toolName, args })
    const at = await this.#store.now()
    const deadline = at + deadlineMs
    const asked = { messageId, toolCallId, toolName, args, digest, terms }
    const approval: Approval = {
      id,
      chat,
      ...asked,
      ...(request.live === true && { liveWorker: this.worker }),
      requestedAt: at,
      deadline,
      votes: [],
      state: { name: 'requested' },
      version: 0,
    }
    const event = { type: 'requested', ...asked, deadline } as const
    const entry = { approvalId: id, chat, version: 0, at, event }
    switch (await this.#store.insert(approval, entry, this.#quota)) {
      case 'inserted':
        this.#publish(approval)
        return approval
      case 'too-many-pending':
        return { refused: 'too-many-pending' }
      case 'exists': {
        const known = await this.#store.findByCall(chat, toolCallId)
        return known?.digest === digest ? known : { refused: 'mismatch' }
      }
    }
  }

  /** Takes a person's decision; what it answers is durable. */
  async decide(id: string, decision: Decision): Promise<Approval | Refusal> {
    const editedArgs =
      decision.editedArgs === undefined
        ? {}
        : { editedArgs: plainJson('`editedArgs`', decision.editedArgs) }
    const payload =
      decision.payload === undefined ? {} : { payload: plainJson('`payload`', decision.payload) }
    const result = await this.#step(id, { type: 'decide', ...decision, ...editedArgs, ...payload })
    // Too late, and the sweep has not come by: everyone may know now.
    if (isRefusal(result) && result.refused === 'expired') await this.#step(id, { type: 'expire' })
    return result
  }

  /** Whether this worker holds anything that another one would take from it when it gives no sign: a call that runs, or a chat. */
  get busy(): boolean {
    return this.#running.size > 0 || this.#locks.size > 0
  }

  /** Takes back a vote, while others have still to decide. */
  async withdraw(id: string, by: Decider): Promise<Approval | Refusal> {
    const result = await this.#step(id, { type: 'withdraw', by })
    if (isRefusal(result) && result.refused === 'expired') await this.#step(id, { type: 'expire' })
    return result
  }

  /** Takes an approval for this worker to run, once; the caller runs `argsToRun` of what it gets, and nothing when refused. */
  async claim(id: string, call: Call): Promise<Approval | Refusal> {
    const { toolCallId, toolName } = call
    const digest = digestCall(call)
    // It may be approved again, because this worker gave no sign for a while; it is not run beside itself for that.
    if (this.#running.has(id)) return { refused: 'not-approved' }
    this.#updateHeld(() => this.#running.set(id, undefined))
    let claimed: Approval | Refusal | undefined
    try {
      const { worker } = this
      claimed = await this.#step(id, { type: 'claim', toolCallId, toolName, digest, worker })
      return claimed
    } finally {
      if (claimed === undefined || isRefusal(claimed))
        this.#updateHeld(() => this.#running.delete(id))
    }
  }

  /** Records that a call took effect. Refused when this worker has lost it: then another one tells what came of it. */
  async succeed(id: string, output: unknown): Promise<Approval | Refusal> {
    return this.#finish(id, { type: 'succeed', worker: this.worker, output: recordable(output) })
  }

  async fail(id: string, error: string): Promise<Approval | Refusal> {
    return this.#finish(id, { type: 'fail', worker: this.worker, error })
  }

  /** Gives up a call of which this worker cannot say what came of it; `recover` settles it. */
  abandon(id: string): void {
    if (this.#running.has(id)) this.#running.set(id, { type: 'lose', worker: this.worker })
  }

  /** Withdraws an approval that has not begun to run. */
  async cancel(id: string, reason: string): Promise<Approval | Refusal> {
    return this.#step(id, { type: 'cancel', reason })
  }

  /** Cancels all of a chat that has not begun to run. */
  async deleteChat(chat: ApprovalChat, reason: string): Promise<Approval[]> {
    const cancelled = await this.#store.deleteChat(chat, reason)
    for (const approval of cancelled) this.#publish(approval)
    return cancelled
  }

  /** Expires those whose deadline has passed, at most `limit` of them, and answers those. */
  async expireDue(limit = 100): Promise<Approval[]> {
    const due = await this.#store.due(limit)
    return this.#stepEach(due, () => ({ type: 'expire' }))
  }

  /** Those whose conversation may not show what came of them, because whoever was to tell it died. At most 100 by default. */
  async unreported(
    filter: Partial<Pick<UnreportedFilter, 'limit' | 'except'>> = {},
  ): Promise<Approval[]> {
    const { appName, leaseMs } = this
    return this.#store.unreported({ limit: 100, ...filter, appName, leaseMs })
  }

  /** Notes that the conversation shows how these calls ended. */
  async markReported(chat: ApprovalChat, toolCallIds: readonly string[]): Promise<void> {
    if (toolCallIds.length > 0) await this.#store.markReported(chat, toolCallIds)
  }

  /** Signs that this worker lives; to be called several times in `leaseMs`. */
  async heartbeat(): Promise<void> {
    await this.#store.heartbeat(this.worker)
  }

  /**
   * Settles what workers left that gave no sign for `leaseMs`: `unknown`, or `approved` again where the tool is idempotent. Never a
   * call that this worker runs. Stores the end of those that have ended here and could not be recorded.
   */
  async recover(): Promise<Approval[]> {
    const settled = await this.recordFinished()
    for (const approval of await this.#store.stale(this.leaseMs)) {
      const { id, state } = approval
      if (state.name !== 'executing' || this.#running.has(id)) continue
      const { leaseMs } = this
      const command = { type: 'lose', worker: state.worker, leaseMs } as const
      const result = nextApproval(approval, command, await this.#store.now())
      // Whoever came first, the worker itself or another one that settles, has settled it; the next look shows.
      if (isRefusal(result) || !(await this.#store.replace(result))) continue
      this.#publish(result.next)
      settled.push(result.next)
    }
    return settled
  }

  /** Reads an approval; with a principal, only if they may know of it. */
  async get(id: string, principal?: Decider): Promise<Approval | undefined> {
    const approval = await this.#store.get(id)
    if (approval?.chat.appName !== this.appName) return undefined
    return principal === undefined || maySee(approval, principal) ? approval : undefined
  }

  async findByCall(chat: ApprovalChat, toolCallId: string): Promise<Approval | undefined> {
    return this.#store.findByCall(chat, toolCallId)
  }

  /** Those of a chat that wait for people. */
  async pendingOf(chat: ApprovalChat): Promise<Approval[]> {
    return this.#store.list({ chat, states: ['requested'], limit: 1_000 })
  }

  async list(filter: Omit<ApprovalFilter, 'appName'>): Promise<Approval[]> {
    return this.#store.list({ ...filter, appName: this.appName })
  }

  /** Reads the audit record in the order of writing. */
  audit(filter: Omit<AuditFilter, 'appName'> = {}): AsyncIterable<AuditRecord> {
    return this.#store.audit({ ...filter, appName: this.appName })
  }

  /** The `seq` of the newest entry of the audit record, of whichever application. */
  lastSeq(): Promise<number> {
    return this.#store.lastSeq()
  }

  /** Writes the audit record as JSON Lines. */
  async *exportAudit(filter: Omit<AuditFilter, 'appName'> = {}): AsyncIterable<string> {
    for await (const record of this.audit(filter)) yield `${JSON.stringify(record)}\n`
  }

  /** Takes a chat for this worker and gives the token of the lock, if it is free; `background` says that others may wait for its end. */
  async lockChat(chat: ApprovalChat, background = false): Promise<string | undefined> {
    const { worker, leaseMs } = this
    const token = randomUUID()
    const lock = { worker, token, leaseMs, background }
    if (!(await this.#store.lockChat(chat, lock))) return undefined
    this.#updateHeld(() => this.#locks.set(keyOf(chat), token))
    return token
  }

  /** Whether a chat that this worker has locked is still its own; true for one that it has not locked. */
  async stillHoldsLock(chat: ApprovalChat): Promise<boolean> {
    const token = this.#locks.get(keyOf(chat))
    return token === undefined || (await this.#store.findLockHolder(chat))?.token === token
  }

  /** The chats of a principal in which another process is at work. */
  async listLockedByOthers(principalId: string): Promise<string[]> {
    const { appName, worker, leaseMs } = this
    return this.#store.listLockedByOthers({ appName, principalId, worker, leaseMs })
  }

  async findLockHolder(chat: ApprovalChat): Promise<ChatLockHolder | undefined> {
    return this.#store.findLockHolder(chat)
  }

  async unlockChat(chat: ApprovalChat, token: string): Promise<void> {
    if (this.#locks.get(keyOf(chat)) === token)
      this.#updateHeld(() => this.#locks.delete(keyOf(chat)))
    await this.#store.unlockChat(chat, token)
  }

  /** Tells every change made through this ledger; those of other processes are seen by reading. Returns the way to stop. */
  onChange(listener: (approval: Approval) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Changes what this worker holds, and has its lease kept as long as it holds anything. */
  #updateHeld(change: () => void): void {
    const wasBusy = this.busy
    change()
    if (this.busy === wasBusy) return
    const { worker, leaseMs } = this
    const lease = { worker, leaseMs, maxBlockedMs: this.#maxBlockedMs, onError: this.#onError }
    this.#renewal ??= this.#store.startLeaseRenewal?.(lease)
    this.#renewal?.setBusy(this.busy)
  }

  /** Stores the end of a call. What cannot be stored now is stored by `recover`, and is this worker's until then. */
  async #finish(id: string, command: ApprovalCommand): Promise<Approval | Refusal> {
    try {
      const ended = await this.#record(id, command)
      this.#updateHeld(() => this.#running.delete(id))
      return ended
    } catch (error) {
      if (this.#running.has(id)) this.#running.set(id, command)
      throw error
    }
  }

  /** Stores the ends of calls that could not be stored when they came. */
  async recordFinished(): Promise<Approval[]> {
    const recorded: Approval[] = []
    for (const [id, command] of this.#running) {
      if (!command) continue
      // While it is tried, nobody else tries it.
      this.#running.set(id, undefined)
      const result = await this.#finish(id, command)
      if (!isRefusal(result)) recorded.push(result)
    }
    return recorded
  }

  /** Records what a tool has done. It cannot be done again, so a locked database is waited for longer than by a request. */
  async #record(id: string, command: ApprovalCommand): Promise<Approval | Refusal> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#step(id, command)
      } catch (error) {
        if (!isBusy(error) || attempt === RECORD_ATTEMPTS) throw error
      }
    }
  }

  async #step(id: string, command: ApprovalCommand): Promise<Approval | Refusal> {
    const known = this.#recent.get(id)
    // What is known may be old. The compare-and-set shows it when the step is possible; when it is not, reading does.
    const result = known && nextApproval(known, command, await this.#store.now())
    if (result && !isRefusal(result) && (await this.#store.replace(result))) {
      this.#publish(result.next)
      return result.next
    }
    const approval = await this.get(id)
    return approval === undefined
      ? { refused: 'unknown-approval' }
      : this.#advance(approval, command)
  }

  async #advance(approval: Approval, command: ApprovalCommand): Promise<Approval | Refusal> {
    let current: Approval | undefined = approval
    for (let attempt = 0; attempt < MAX_ATTEMPTS && current !== undefined; attempt += 1) {
      const result = nextApproval(current, command, await this.#store.now())
      if (isRefusal(result)) return result
      if (await this.#store.replace(result)) {
        this.#publish(result.next)
        return result.next
      }
      current = await this.#store.get(approval.id)
    }
    throw new ApprovalError(
      'contended',
      `The approval ${approval.id} changed ${MAX_ATTEMPTS} times while it was to be changed.`,
    )
  }

  async #stepEach(
    approvals: readonly Approval[],
    commandFor: (approval: Approval) => ApprovalCommand | undefined,
  ): Promise<Approval[]> {
    const changed: Approval[] = []
    for (const approval of approvals) {
      const command = commandFor(approval)
      const result = command && (await this.#advance(approval, command))
      if (result !== undefined && !isRefusal(result)) changed.push(result)
    }
    return changed
  }

  #publish(approval: Approval): void {
    this.#recent.keep(approval)
    for (const listener of this.#listeners) {
      try {
        listener(approval)
      } catch (error) {
        this.#onError(error)
      }
    }
  }
}

function keyOf({ appName, principalId, chatId }: ApprovalChat): string {
  return JSON.stringify([appName, principalId, chatId])
}

// Every lost race is a step forward of another: a life has fewer steps than this, its votes included.
const MAX_ATTEMPTS = 256

/** Each takes as long as the store waits: a minute by default. */
const RECORD_ATTEMPTS = 12

/** Tells whether a store failed only because another process held it; see `StoreErrorCode`. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'busy'
}

function recordable(output: unknown): unknown {
  try {
    return plainJson('The output', output)
  } catch (error) {
    // The tool has taken effect, so that it did must be recorded whatever it returned.
    return {
      unrecorded: error instanceof ApprovalError ? error.message : 'The output is unreadable.',
    }
  }
}

import { randomUUID } from 'node:crypto'

import type { Preview } from '../protocol/preview.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import { withoutUndefined } from '../shared/collections.ts'

import type {
  ApprovalFilter,
  ApprovalStore,
  AuditFilter,
  PendingQuota,
  UnreportedFilter,
  VisibleFilter,
} from './approval-store.ts'
import type { Approval, ApprovalTerms } from './approval.ts'
import { isRefusal, type Refusal } from './approval.ts'
import type { AuditEvent, AuditRecord } from './audit-entry.ts'
import { ApprovalWriter, type Steps } from './approval-writer.ts'
import { ChatLocks } from '../locks/chat-locks.ts'
import { OwnLease } from '../locks/own-lease.ts'
import { maySee, type Decider } from './deciders.ts'
import { digestCall, plainJson, recordable, type Call } from './digest.ts'
import { withoutOffers } from './grant-terms.ts'
import {
  nextApproval,
  nextApprovals,
  type ApprovalCommand,
  type Decision,
  type Failure,
  type NextNote,
} from './next-approval.ts'

export interface LedgerOptions {
  readonly store: ApprovalStore
  /** The application. Approvals of other applications are invisible. */
  readonly appName: string
  /** Names this process in leases. Default: a random id. */
  readonly worker?: string
  /** How many approvals may be pending at the same time. Default: 16 in a chat, 100 for a principal. */
  readonly quota?: Partial<PendingQuota>
  /** The version of the policy, which the audit record keeps with each request. */
  readonly policyVersion?: string
  /** How long a lease is valid without renewal, in ms. Default 15,000. */
  readonly leaseMs?: number
  /** How long the event loop of this process may be blocked before its lease expires, in ms. Default: 8 times `leaseMs`. */
  readonly maxBlockedMs?: number
  /** Receives errors that listeners throw and errors of background work. Default: ignores them. */
  readonly onError?: (error: unknown) => void
}

export interface ApprovalRequest extends Call {
  /** Default: a random id. */
  readonly id?: string
  readonly messageId: string
  readonly terms: ApprovalTerms
  readonly deadlineMs: number
  /** Whether this worker has the call and reacts to the decision: a live session made it, or it asks while it runs. Default false. */
  readonly isAwaited?: boolean
}

/** The approvals of an application. Each change is one compare-and-set in the store, written together with its audit entry. */
export class Ledger {
  readonly worker: string
  readonly appName: string
  readonly leaseMs: number
  /** The chat locks of this worker. They have the same lease as its calls. */
  readonly locks: ChatLocks
  readonly #lease: OwnLease
  readonly #store: ApprovalStore
  readonly #quota: PendingQuota
  readonly #policyVersion: string | undefined
  readonly #writer: ApprovalWriter
  /**
   * Calls that this worker has claimed and whose outcome is not stored. The value is the outcome that still has to be
   * stored, if the call has ended.
   */
  readonly #running = new Map<string, ApprovalCommand | undefined>()
  /** The attempts to store outcomes that could not be stored when their calls ended. */
  readonly #finishing = new Map<string, Promise<Approval | Refusal>>()
  /** Whether other processes may wait for this worker to react to a decision. */
  #isAwaited = false
  #isCutOff = false

  constructor({ store, appName, worker = randomUUID(), ...options }: LedgerOptions) {
    const { leaseMs = 15_000, maxBlockedMs = leaseMs * 8, onError = () => {} } = options
    this.#store = store
    this.appName = appName
    this.worker = worker
    this.leaseMs = leaseMs
    this.#policyVersion = options.policyVersion
    this.#quota = { perChat: 16, perPrincipal: 100, ...options.quota }
    this.#writer = new ApprovalWriter(store, appName, onError)
    this.#lease = new OwnLease(store, { worker, leaseMs, maxBlockedMs, onError })
    this.locks = new ChatLocks(store, this.#lease, appName)
  }

  /** Returns the time of the database, in ms since 1970. It is the same for all servers. */
  async now(): Promise<number> {
    return this.#store.now()
  }

  /** The version of the policy, if the application names it. */
  get policyVersion(): string | undefined {
    return this.#policyVersion
  }

  /** Requests an approval for a call. Returns the existing approval if the same call was requested before. */
  async request(request: ApprovalRequest): Promise<Approval | Refusal> {
    const { approval, event, entry } = await this.#create(request)
    const { chat, toolCallId, digest } = approval
    if (request.isAwaited === true) this.#isAwaited = true
    switch (await this.#store.insert(approval, entry, this.#quota)) {
      case 'inserted':
        this.#writer.publish(approval, event)
        return approval
      case 'too-many-pending':
      case 'refused':
        return { refused: 'too-many-pending' }
      case 'exists': {
        const known = await this.#store.findByCall(chat, toolCallId)
        return known?.digest === digest ? known : { refused: 'mismatch' }
      }
    }
  }

  /**
   * Requests an approval that an earlier decision decides, and claims the call if it is approved, in one commit. Returns undefined, and
   * stores nothing, if the decision does not apply, or no longer.
   */
  async requestDecided(
    request: ApprovalRequest,
    decision: Decision,
  ): Promise<Approval | undefined> {
    const { approval, event, entry } = await this.#create(request)
    const { id, requestedAt } = approval
    const steps = await this.#claiming(id, approval, async (claim) => {
      const transitions = nextApprovals(approval, [toCommand(decision), claim], requestedAt)
      if (isRefusal(transitions)) return transitions
      const last = transitions.at(-1)?.next.state.name
      if (last !== 'executing' && last !== 'denied') return { refused: 'not-approved' }
      const added = await this.#store.insert(approval, entry, this.#quota, transitions)
      if (added !== 'inserted') return { refused: 'not-approved' }
      this.#writer.publish(approval, event)
      return this.#writer.publishAll(transitions)
    })
    return isRefusal(steps) ? undefined : steps.at(-1)
  }

  /** Creates an approval as it is requested, with its first audit entry. */
  async #create(request: ApprovalRequest) {
    const { id = randomUUID(), messageId, toolCallId, toolName, deadlineMs } = request
    const { appName, principalId, chatId } = request.chat
    const chat = { appName, principalId, chatId }
    const args = plainJson('`args`', request.args)
    // A grant covers neither questions nor the calls of agents that are used as tools.
    const { kind, path } = request.terms
    const isPlain = kind === undefined && path === undefined
    const terms = plainJson('`terms`', isPlain ? request.terms : withoutOffers(request.terms))
    const digest = digestCall({ chat, toolCallId, toolName, args })
    const at = await this.#store.now()
    const deadline = at + deadlineMs
    const asked = { messageId, toolCallId, toolName, args, digest, terms }
    const approval: Approval = {
      id,
      chat,
      ...asked,
      ...(request.isAwaited === true && { waitingWorker: this.worker }),
      requestedAt: at,
      deadline,
      votes: [],
      state: { name: 'requested' },
      version: 0,
    }
    const version = withoutUndefined({ policyVersion: this.#policyVersion })
    const event = { type: 'requested', ...asked, deadline, ...version } as const
    return { approval, event, entry: { approvalId: id, chat, version: 0, at, event } }
  }

  /** Records a person's decision. It is durable when the promise resolves. `known` is the approval as the caller has read it. */
  async decide(id: string, decision: Decision, known?: Approval): Promise<Approval | Refusal> {
    const result = await this.#writer.step(id, toCommand(decision), known)
    await this.#expireIfDue(id, result)
    return result
  }

  /**
   * Records a person's decision about an approval as the caller has read it. If the decision completes the approval,
   * claims the call for this worker in the same commit. The caller then runs the call, as after `claim`.
   */
  async decideAndClaim(
    approval: Approval,
    decision: Decision,
    call: Call,
  ): Promise<DecidedCall | Refusal> {
    const { id } = approval
    const command = toCommand(decision)
    await this.releaseClaim(id)
    // If another request of this process decides the approval now, one of the two is refused.
    const steps = this.#running.has(id)
      ? await this.#writer.stepAll(id, [command], approval)
      : await this.#claiming(id, call, (claim) =>
          this.#writer.stepAll(id, [command, claim], approval),
        )
    await this.#expireIfDue(id, steps)
    if (isRefusal(steps)) return steps
    const [decided, claimed] = steps
    return { decided, claimed }
  }

  /** Expires an approval whose deadline has passed and that the sweep has not found yet. */
  async #expireIfDue(id: string, result: object): Promise<void> {
    if (isRefusal(result) && result.refused === 'expired')
      await this.#writer.step(id, { type: 'expire' })
  }

  /**
   * Whether this worker holds anything that another worker would take over when its lease expires: a running call or
   * a chat lock.
   */
  get busy(): boolean {
    return this.#lease.busy
  }

  /** Records what happens to an approval beside its decisions, such as a decision that was refused in the chat. */
  async note(id: string, next: NextNote): Promise<Approval | Refusal> {
    return this.#writer.step(id, { type: 'note', next })
  }

  /** Withdraws a vote while other people still have to decide. */
  async withdraw(id: string, by: Decider): Promise<Approval | Refusal> {
    const result = await this.#writer.step(id, { type: 'withdraw', by })
    await this.#expireIfDue(id, result)
    return result
  }

  /**
   * Claims an approved call for this worker. A call can be claimed only once. The caller runs it with `argsToRun`, or
   * does not run it if the claim is refused.
   */
  async claim(id: string, call: Call): Promise<Approval | Refusal> {
    await this.releaseClaim(id)
    const claimed = await this.#claiming(id, call, (claim) => this.#writer.stepAll(id, [claim]))
    return isRefusal(claimed) ? claimed : claimed[0]
  }

  /** Holds a call for this worker while `step` claims it, and for as long as it runs. */
  async #claiming(
    id: string,
    call: Call,
    step: (claim: ApprovalCommand) => Promise<Steps | Refusal>,
  ): Promise<Steps | Refusal> {
    const { toolCallId, toolName } = call
    const digest = digestCall(call)
    // Another worker may have set the call back to approved because the lease of this one expired. It is still
    // running here and must not run twice.
    if (this.#running.has(id)) return { refused: 'not-approved' }
    this.#hold(id)
    const { worker } = this
    try {
      const steps = await step({ type: 'claim', toolCallId, toolName, digest, worker })
      const isClaimed = !isRefusal(steps) && steps.some(({ state }) => state.name === 'executing')
      if (!isClaimed) this.#release(id)
      return steps
    } catch (error) {
      // LG1450: the claim may be stored although the store has failed, unless it could not begin.
      if (isBusy(error)) this.#release(id)
      else this.#running.set(id, { type: 'lose', worker, isUnstarted: true })
      throw error
    }
  }

  /** LG1450: gives up a claim that may be stored although the store failed. The call can then be claimed again. */
  async releaseClaim(id: string): Promise<void> {
    const command = this.#running.get(id)
    if (command?.type === 'lose' && command.isUnstarted) await this.#finishLater(id, command)
  }

  /** Keeps a call for this worker, so that the lease is renewed while it runs. */
  #hold(id: string): void {
    this.#running.set(id, undefined)
    this.#lease.hold(id)
  }

  #release(id: string): void {
    this.#running.delete(id)
    this.#lease.release(id)
  }

  /** Records that a call succeeded. Refused if this worker has lost the call: another worker then reports its outcome. */
  async succeed(id: string, output: unknown, receipt?: Preview): Promise<Approval | Refusal> {
    const result = { output: recordable(output), ...(receipt && { receipt }) }
    return this.#finish(id, { type: 'succeed', worker: this.worker, ...result })
  }

  /** Records that a call failed: its tool threw, or returned an `output` that reports a failure. */
  async fail(
    id: string,
    error: string,
    { output, ...rest }: Omit<Failure, 'error'> = {},
  ): Promise<Approval | Refusal> {
    const result = { ...rest, ...(output !== undefined && { output: recordable(output) }) }
    return this.#finish(id, { type: 'fail', worker: this.worker, error, ...result })
  }

  /** Gives up a call whose outcome this worker does not know. `recover` settles it. Keeps an outcome that could not be stored (LG82). */
  abandon(id: string): void {
    if (this.#running.has(id) && this.#running.get(id) === undefined)
      this.#running.set(id, { type: 'lose', worker: this.worker })
  }

  /** Cancels an approval that has not started to run. */
  async cancel(id: string, reason: string): Promise<Approval | Refusal> {
    return this.#writer.step(id, { type: 'cancel', reason })
  }

  /** Cancels all approvals of a chat that have not started to run. */
  async deleteChat(chat: AppChatRef, reason: string): Promise<Approval[]> {
    const cancelled = await this.#store.deleteChat(chat, reason)
    for (const approval of cancelled) this.#writer.publish(approval, { type: 'cancelled', reason })
    return cancelled
  }

  /** Expires approvals whose deadline has passed, at most `limit`, and returns them. */
  async expireDue(limit = 100): Promise<Approval[]> {
    const expired: Approval[] = []
    for (const approval of await this.#store.due(limit)) {
      const result = await this.#writer.advance(approval, [{ type: 'expire' }])
      if (!isRefusal(result)) expired.push(...result)
    }
    return expired
  }

  /**
   * Lists approvals whose outcome may be missing from the conversation because the process that had to report it
   * crashed. At most 100 by default.
   */
  async unreported(
    filter: Partial<Pick<UnreportedFilter, 'limit' | 'except'>> = {},
  ): Promise<Approval[]> {
    const { appName, leaseMs } = this
    return this.#store.unreported({ limit: 100, ...filter, appName, leaseMs })
  }

  /** Records that the conversation shows the outcome of these calls. */
  async markReported(chat: AppChatRef, toolCallIds: readonly string[]): Promise<void> {
    if (toolCallIds.length > 0) await this.#store.markReported(chat, toolCallIds)
  }

  /** Renews the lease of this worker. Call it several times within `leaseMs`. */
  async heartbeat(): Promise<void> {
    await this.#tick((maxGapMs) => this.#store.heartbeat(this.worker, maxGapMs))
  }

  /** Lets the leases of other workers expire in time. Call it instead of `heartbeat` while this worker is idle. */
  async tickLeases(): Promise<void> {
    await this.#tick(async (maxGapMs) => this.#store.tickLeases?.(maxGapMs))
  }

  /** LG1020: the time since the last success does not count for leases if the store has failed since then. */
  async #tick(advance: (maxGapMs: number) => Promise<void>): Promise<void> {
    const maxGapMs = this.#isCutOff ? 0 : this.leaseMs / 3
    this.#isCutOff = true
    await advance(maxGapMs)
    this.#isCutOff = false
  }

  /** Records that this worker closes, so that no process waits for it. Does nothing while it still runs calls. */
  async close(): Promise<void> {
    if (this.#isAwaited && !this.busy) await this.#store.endLease?.(this.worker)
  }

  /** Whether this worker runs the call of an approval. */
  runsHere({ state }: Approval): boolean {
    return state.name === 'executing' && state.worker === this.worker
  }

  /** Whether the call of an approval waits in this worker. */
  waitsHere({ waitingWorker }: Approval): boolean {
    return waitingWorker === this.worker
  }

  /** Whether a worker has closed. Returns false for a worker that crashed. */
  async hasClosed(worker: string): Promise<boolean> {
    return (await this.#store.hasEnded?.(worker)) ?? false
  }

  /**
   * Settles the calls of workers whose lease has expired: as `unknown`, or as `approved` again if the tool is
   * idempotent. Never settles a call that runs in this process. Also stores the outcomes of calls of this process
   * that could not be stored when they ended.
   */
  async recover(): Promise<Approval[]> {
    const settled = await this.recordFinished()
    for (const approval of await this.#store.stale(this.leaseMs)) {
      const { id, state } = approval
      if (state.name !== 'executing' || this.#running.has(id)) continue
      const { leaseMs } = this
      const command = { type: 'lose', worker: state.worker, leaseMs } as const
      const result = nextApproval(approval, command, await this.#store.now())
      // The worker itself or another process has settled the call first.
      if (isRefusal(result) || !(await this.#writer.replace([result]))) continue
      settled.push(result.next)
    }
    return settled
  }

  /** Returns an approval. With a principal, returns it only if the principal may see it. */
  async get(id: string, principal?: Decider): Promise<Approval | undefined> {
    return this.#ifVisible(await this.#writer.read(id), principal)
  }

  /** Returns an approval that this process has stored, without reading it. Another process may have changed it since. */
  getRecent(id: string, principal: Decider): Approval | undefined {
    return this.#ifVisible(this.#writer.recent(id), principal)
  }

  #ifVisible(approval: Approval | undefined, principal?: Decider): Approval | undefined {
    if (approval?.chat.appName !== this.appName) return undefined
    return principal === undefined || maySee(approval, principal) ? approval : undefined
  }

  async findByCall(chat: AppChatRef, toolCallId: string): Promise<Approval | undefined> {
    return this.#store.findByCall(chat, toolCallId)
  }

  /** Lists the pending approvals of a chat. */
  async pendingOf(chat: AppChatRef): Promise<Approval[]> {
    return this.#store.list({ chat, states: ['requested'], limit: 1_000 })
  }

  /** Counts the pending approvals of the application, up to `limit`. Undefined if the store cannot count. */
  async countPending(limit: number): Promise<number | undefined> {
    return this.#store.countPending?.(this.appName, limit)
  }

  async list(filter: Omit<ApprovalFilter, 'appName'>): Promise<Approval[]> {
    return this.#store.list({ ...filter, appName: this.appName })
  }

  /**
   * Lists approvals that a principal may see, pending and decided, newest first. Returns undefined if the store cannot list them.
   */
  async listVisible(filter: Omit<VisibleFilter, 'appName'>): Promise<Approval[] | undefined> {
    const found = await this.#store.listVisible?.({ ...filter, appName: this.appName })
    return found?.filter((approval) => maySee(approval, filter.reader))
  }

  /** Reads the audit record in write order. */
  audit(filter: Omit<AuditFilter, 'appName'> = {}): AsyncIterable<AuditRecord> {
    return this.#store.audit({ ...filter, appName: this.appName })
  }

  /** Returns the `seq` of the newest audit entry of any application. */
  lastSeq(): Promise<number> {
    return this.#store.lastSeq()
  }

  /**
   * Calls the listener for each change made through this ledger, with its audit event, not for changes of other processes. Returns a
   * function that unsubscribes.
   */
  onChange(listener: (approval: Approval, event: AuditEvent) => void): () => void {
    return this.#writer.onChange(listener)
  }

  /** Stores the outcome of a call. If that fails, the call stays with this worker and `recover` tries again. */
  async #finish(id: string, command: ApprovalCommand): Promise<Approval | Refusal> {
    try {
      const ended = await this.#record(id, command)
      this.#release(id)
      return ended
    } catch (error) {
      if (this.#running.has(id)) this.#running.set(id, command)
      throw error
    }
  }

  /** Stores the outcomes of calls that could not be stored when the calls ended. */
  async recordFinished(): Promise<Approval[]> {
    const recorded: Approval[] = []
    for (const [id, command] of this.#running) {
      if (!command) continue
      const result = await this.#finishLater(id, command)
      if (!isRefusal(result)) recorded.push(result)
    }
    return recorded
  }

  /** Stores the outcome of a call that could not be stored when the call ended. Callers at the same time share one attempt. */
  #finishLater(id: string, command: ApprovalCommand): Promise<Approval | Refusal> {
    const finishing =
      this.#finishing.get(id) ?? this.#finish(id, command).finally(() => this.#finishing.delete(id))
    this.#finishing.set(id, finishing)
    return finishing
  }

  /**
   * Stores the outcome of a tool that has run. It cannot run again, so this waits longer for a locked database than a
   * request does.
   */
  async #record(id: string, command: ApprovalCommand): Promise<Approval | Refusal> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#writer.step(id, command)
      } catch (error) {
        if (!isBusy(error) || attempt === RECORD_ATTEMPTS) throw error
      }
    }
  }
}

/** A decided approval, and the same approval as claimed by this worker, if the decision completed it. */
export interface DecidedCall {
  readonly decided: Approval
  readonly claimed: Approval | undefined
}

function toCommand(decision: Decision): ApprovalCommand {
  const { editedArgs, payload } = decision
  return {
    type: 'decide',
    ...decision,
    ...(editedArgs !== undefined && { editedArgs: plainJson('`editedArgs`', editedArgs) }),
    ...(payload !== undefined && { payload: plainJson('`payload`', payload) }),
  }
}

/** Each attempt takes as long as the store waits for a lock: a minute in total by default. */
const RECORD_ATTEMPTS = 12

/** Whether a store failed only because another process had locked the database. See `StoreErrorCode`. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'busy'
}

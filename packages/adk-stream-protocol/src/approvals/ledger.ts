import { randomUUID } from 'node:crypto'
import type { Approval, ApprovalChat, ApprovalTerms } from './approval.ts'
import { ApprovalError } from './approval-error.ts'
import type {
  ApprovalFilter,
  ApprovalStore,
  AuditFilter,
  ChatHolder,
  PendingQuota,
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
  /** Hears of listeners that throw. Default: nobody. */
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
  /** Calls that this worker has claimed and whose outcome is not recorded. */
  readonly #running = new Set<string>()

  constructor({ store, appName, worker = randomUUID(), ...options }: LedgerOptions) {
    this.#store = store
    this.appName = appName
    this.worker = worker
    this.leaseMs = options.leaseMs ?? 15_000
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
        this.#tell(approval)
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
    const result = await this.#step(id, { type: 'decide', ...decision, ...editedArgs })
    // Too late, and the sweep has not come by: everyone may know now.
    if (isRefusal(result) && result.refused === 'expired') await this.#step(id, { type: 'expire' })
    return result
  }

  /** Takes an approval for this worker to run, once; the caller runs `argsToRun` of what it gets, and nothing when refused. */
  async claim(id: string, call: Call): Promise<Approval | Refusal> {
    const { toolCallId, toolName } = call
    const digest = digestCall(call)
    const command = { type: 'claim', toolCallId, toolName, digest, worker: this.worker } as const
    this.#running.add(id)
    const claimed = await this.#step(id, command).catch((error: unknown) => {
      this.#running.delete(id)
      throw error
    })
    if (isRefusal(claimed)) this.#running.delete(id)
    return claimed
  }

  /** Whether a call runs that this worker has claimed. */
  get busy(): boolean {
    return this.#running.size > 0
  }

  async succeed(id: string, output: unknown): Promise<Approval | Refusal> {
    return this.#record(id, { type: 'succeed', worker: this.worker, output: recordable(output) })
  }

  async fail(id: string, error: string): Promise<Approval | Refusal> {
    return this.#record(id, { type: 'fail', worker: this.worker, error })
  }

  /** Withdraws an approval that has not begun to run. */
  async cancel(id: string, reason: string): Promise<Approval | Refusal> {
    return this.#step(id, { type: 'cancel', reason })
  }

  /** Cancels all of a chat that has not begun to run. */
  async deleteChat(chat: ApprovalChat, reason: string): Promise<Approval[]> {
    const cancelled = await this.#store.deleteChat(chat, reason)
    for (const approval of cancelled) this.#tell(approval)
    return cancelled
  }

  /** Expires those whose deadline has passed, at most `limit` of them, and answers those. */
  async expireDue(limit = 100): Promise<Approval[]> {
    const due = await this.#store.due(limit)
    return this.#stepEach(due, () => ({ type: 'expire' }))
  }

  /** Those whose conversation may not show what came of them, because whoever was to tell it died; at most `limit`. */
  async untold(limit = 100): Promise<Approval[]> {
    const { appName, leaseMs } = this
    return this.#store.untold({ appName, leaseMs, limit })
  }

  /** Notes that the conversation shows how these calls ended. */
  async noteTold(chat: ApprovalChat, toolCallIds: readonly string[]): Promise<void> {
    if (toolCallIds.length > 0) await this.#store.noteTold(chat, toolCallIds)
  }

  /** Signs that this worker lives; to be called several times in `leaseMs`. */
  async beat(): Promise<void> {
    await this.#store.beat(this.worker)
  }

  /** Settles what workers left that gave no sign for `leaseMs`: `unknown`, or `approved` again where the tool is idempotent. */
  async recover(): Promise<Approval[]> {
    const stale = await this.#store.stale(this.leaseMs)
    return this.#stepEach(stale, ({ state }) =>
      state.name === 'executing' ? { type: 'lose', worker: state.worker } : undefined,
    )
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

  /** Takes a chat for this worker; `background` says that others may wait for its end. */
  async lockChat(chat: ApprovalChat, background = false): Promise<boolean> {
    const { worker, leaseMs } = this
    return this.#store.lockChat(chat, { worker, leaseMs, background })
  }

  /** The chats of a principal in which another process is at work. */
  async heldByOthers(principalId: string): Promise<string[]> {
    const { appName, worker, leaseMs } = this
    return this.#store.heldByOthers({ appName, principalId, worker, leaseMs })
  }

  async holderOf(chat: ApprovalChat): Promise<ChatHolder | undefined> {
    return this.#store.holderOf(chat)
  }

  async unlockChat(chat: ApprovalChat): Promise<void> {
    await this.#store.unlockChat(chat, this.worker)
  }

  /** Tells every change made through this ledger; those of other processes are seen by reading. Returns the way to stop. */
  onChange(listener: (approval: Approval) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Records what a tool has done. It cannot be done again, so a locked database is waited for longer than by a request. */
  async #record(id: string, command: ApprovalCommand): Promise<Approval | Refusal> {
    try {
      return await this.#stepPatiently(id, command)
    } finally {
      this.#running.delete(id)
    }
  }

  async #stepPatiently(id: string, command: ApprovalCommand): Promise<Approval | Refusal> {
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
      this.#tell(result.next)
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
        this.#tell(result.next)
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

  #tell(approval: Approval): void {
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

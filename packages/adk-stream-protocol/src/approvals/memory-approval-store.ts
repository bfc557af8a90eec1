import type { Approval, ApprovalChat, ApprovalStep } from './approval.ts'
import type {
  ApprovalFilter,
  ApprovalStore,
  AuditFilter,
  ChatHolder,
  ChatLock,
  HeldFilter,
  PendingQuota,
  UntoldFilter,
} from './approval-store.ts'
import type { AuditEntry, AuditRecord } from './audit-entry.ts'
import { type Decider, nextApproval, type Transition, untoldSince } from './next-approval.ts'
import { isRefusal } from './refusal.ts'

/** Approvals in the memory of one process: for tests, and as the shortest reading of the interface. */
export class MemoryApprovalStore implements ApprovalStore {
  readonly #approvals = new Map<string, Approval>()
  readonly #byCall = new Map<string, string>()
  readonly #audit: AuditRecord[] = []
  /** Since when something is to be told, by approval. */
  readonly #untoldSince = new Map<string, number>()
  readonly #beats = new Map<string, number>()
  readonly #locks = new Map<
    string,
    ChatLock & { readonly at: number; readonly chat: ApprovalChat }
  >()
  readonly #clock: () => number

  constructor(clock: () => number = Date.now) {
    this.#clock = clock
  }

  async now(): Promise<number> {
    return this.#clock()
  }

  async insert(
    approval: Approval,
    entry: AuditEntry,
    quota: PendingQuota,
  ): ReturnType<ApprovalStore['insert']> {
    const call = callKey(approval.chat, approval.toolCallId)
    if (this.#approvals.has(approval.id) || this.#byCall.has(call)) return 'exists'
    const { appName, principalId } = approval.chat
    const pending = this.#select({ appName, principalId, states: ['requested'] })
    if (pending.length >= quota.perPrincipal) return 'too-many-pending'
    const ofChat = pending.filter(({ chat }) => isSameChat(chat, approval.chat))
    if (ofChat.length >= quota.perChat) return 'too-many-pending'
    this.#byCall.set(call, approval.id)
    this.#write(approval, entry)
    return 'inserted'
  }

  async get(id: string): Promise<Approval | undefined> {
    return structuredClone(this.#approvals.get(id))
  }

  async findByCall(chat: ApprovalChat, toolCallId: string): Promise<Approval | undefined> {
    return this.get(this.#byCall.get(callKey(chat, toolCallId)) ?? '')
  }

  async replace({ next, entry, before }: Transition): Promise<boolean> {
    if (this.#approvals.get(next.id)?.version !== next.version - 1) return false
    if (before !== undefined && this.#clock() >= before) return false
    this.#write(next, entry)
    return true
  }

  async list({ limit, after, ...filter }: ApprovalFilter): Promise<Approval[]> {
    const ids = [...this.#approvals.keys()]
    const known = new Set(ids.slice(0, after === undefined ? 0 : ids.indexOf(after) + 1))
    const rest = this.#select(filter).filter(({ id }) => !known.has(id))
    return structuredClone(rest.slice(0, limit))
  }

  async due(limit: number): Promise<Approval[]> {
    const now = this.#clock()
    return this.#select({ states: ['requested'] })
      .filter(({ deadline }) => deadline <= now)
      .toSorted((one, other) => one.deadline - other.deadline)
      .slice(0, limit)
  }

  async untold({ appName, leaseMs, limit }: UntoldFilter): Promise<Approval[]> {
    const before = this.#clock() - leaseMs
    const found = this.#select({ appName }).filter(({ id, chat, state }) => {
      const since = this.#untoldSince.get(id)
      if (since === undefined || this.#isHeld(chat, leaseMs)) return false
      return state.name === 'approved' || since <= before
    })
    return structuredClone(found.slice(0, limit))
  }

  async noteTold(chat: ApprovalChat, toolCallIds: readonly string[]): Promise<void> {
    for (const toolCallId of toolCallIds) {
      const id = this.#byCall.get(callKey(chat, toolCallId)) ?? ''
      if (this.#approvals.get(id)?.state.name !== 'approved') this.#untoldSince.delete(id)
    }
  }

  async lastSeq(): Promise<number> {
    return this.#audit.length
  }

  async *audit({ appName, approvalId, chat, after = 0, limit = Infinity }: AuditFilter) {
    let left = limit
    for (const record of this.#audit.slice(after)) {
      if (appName !== undefined && record.chat.appName !== appName) continue
      if (approvalId !== undefined && record.approvalId !== approvalId) continue
      if (chat !== undefined && !isSameChat(record.chat, chat)) continue
      if (left-- <= 0) return
      yield structuredClone(record)
    }
  }

  async beat(worker: string): Promise<void> {
    this.#beats.set(worker, this.#clock())
  }

  async stale(leaseMs: number): Promise<Approval[]> {
    return this.#select({ states: ['executing'] }).filter(
      ({ state }) => state.name === 'executing' && !this.#lives(state.worker, state.at, leaseMs),
    )
  }

  async lockChat(chat: ApprovalChat, lock: ChatLock): Promise<boolean> {
    const held = this.#locks.get(callKey(chat))
    if (held?.worker !== lock.worker && this.#isHeld(chat, lock.leaseMs)) return false
    this.#locks.set(callKey(chat), { ...lock, chat, at: this.#clock() })
    return true
  }

  async holderOf(chat: ApprovalChat): Promise<ChatHolder | undefined> {
    const held = this.#locks.get(callKey(chat))
    return held && { background: held.background, signAt: this.#lastSign(held.worker, held.at) }
  }

  async heldByOthers(filter: HeldFilter): Promise<string[]> {
    const { appName, principalId, worker, leaseMs } = filter
    const held = [...this.#locks.values()].filter(
      (lock) =>
        lock.chat.appName === appName &&
        lock.chat.principalId === principalId &&
        lock.worker !== worker &&
        this.#lives(lock.worker, lock.at, leaseMs),
    )
    return held.map(({ chat }) => chat.chatId)
  }

  async unlockChat(chat: ApprovalChat, worker: string): Promise<void> {
    if (this.#locks.get(callKey(chat))?.worker === worker) this.#locks.delete(callKey(chat))
  }

  async deleteChat(chat: ApprovalChat, reason: string): Promise<Approval[]> {
    const open = this.#select({ chat, states: ['requested', 'approved'] })
    const cancelled = open.flatMap((approval) => {
      const result = nextApproval(approval, { type: 'cancel', reason }, this.#clock())
      if (isRefusal(result)) return []
      this.#write(result.next, result.entry)
      return [result.next]
    })
    for (const { id } of this.#select({ chat })) this.#untoldSince.delete(id)
    return cancelled
  }

  #write(approval: Approval, entry: AuditEntry): void {
    this.#approvals.set(approval.id, structuredClone(approval))
    const since = untoldSince(approval)
    if (since === undefined) this.#untoldSince.delete(approval.id)
    else this.#untoldSince.set(approval.id, since)
    this.#audit.push({ ...structuredClone(entry), seq: this.#audit.length + 1 })
  }

  #select(filter: Omit<ApprovalFilter, 'limit' | 'after'>): Approval[] {
    const { appName, principalId, chat, states, deciderOf } = filter
    return [...this.#approvals.values()].filter(
      (approval) =>
        (appName === undefined || approval.chat.appName === appName) &&
        (principalId === undefined || approval.chat.principalId === principalId) &&
        (chat === undefined || isSameChat(approval.chat, chat)) &&
        (states === undefined || states.includes(approval.state.name)) &&
        (deciderOf === undefined || waitsFor(approval, deciderOf)),
    )
  }

  #isHeld(chat: ApprovalChat, leaseMs: number): boolean {
    const held = this.#locks.get(callKey(chat))
    return held !== undefined && this.#lives(held.worker, held.at, leaseMs)
  }

  #lives(worker: string, seenAt: number, leaseMs: number): boolean {
    return this.#lastSign(worker, seenAt) > this.#clock() - leaseMs
  }

  #lastSign(worker: string, seenAt: number): number {
    return Math.max(this.#beats.get(worker) ?? 0, seenAt)
  }
}

function callKey({ appName, principalId, chatId }: ApprovalChat, toolCallId?: string): string {
  return JSON.stringify([appName, principalId, chatId, toolCallId])
}

function isSameChat(one: ApprovalChat, other: ApprovalChat): boolean {
  return callKey(one) === callKey(other)
}

function waitsFor({ state, terms }: Approval, { id, roles }: Decider): boolean {
  const isNamed = (step: ApprovalStep) =>
    step.principals.includes(id) || step.roles.some((role) => roles.includes(role))
  return state.name === 'requested' && terms.chain.some(isNamed)
}

import type {
  ApprovalFilter,
  ApprovalStore,
  AuditFilter,
  PendingQuota,
  UnreportedFilter,
  VisibleFilter,
} from '../../../src/approvals/approval-store.ts'
import type {
  ChatLock,
  ChatLockHolder,
  LockedChatsFilter,
  OwnLock,
} from '../../../src/locks/lock-store.ts'
import type { Approval } from '../../../src/approvals/approval.ts'
import { isRefusal } from '../../../src/approvals/approval.ts'
import type { AuditEntry, AuditRecord } from '../../../src/approvals/audit-entry.ts'
import { isWaitingFor, maySee } from '../../../src/approvals/deciders.ts'
import {
  isUnreported,
  nextApproval,
  type Transition,
} from '../../../src/approvals/next-approval.ts'
import type { AppChatRef } from '../../../src/shared/chat-ref.ts'

/** Stores approvals in memory. The shortest implementation of the interface, for tests. */
export class MemoryApprovalStore implements ApprovalStore {
  readonly #approvals = new Map<string, Approval>()
  readonly #byCall = new Map<string, string>()
  readonly #audit: AuditRecord[] = []
  /** Since when the outcome is unreported, by approval id. */
  readonly #unreportedSince = new Map<string, number>()
  readonly #beats = new Map<string, number>()
  readonly #locks = new Map<string, ChatLock & { readonly at: number; readonly chat: AppChatRef }>()
  /** When each running call was claimed. */
  readonly #startedAt = new Map<string, number>()
  readonly #clock: () => number
  readonly #leaseClock: () => number

  constructor(clock: () => number = Date.now, leaseClock: () => number = () => performance.now()) {
    this.#clock = clock
    this.#leaseClock = leaseClock
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

  async findByCall(chat: AppChatRef, toolCallId: string): Promise<Approval | undefined> {
    return this.get(this.#byCall.get(callKey(chat, toolCallId)) ?? '')
  }

  async replace(transition: Transition): Promise<boolean> {
    return this.#replace(transition)
  }

  #replace({ next, entry, before, silent }: Transition): boolean {
    if (this.#approvals.get(next.id)?.version !== next.version - 1) return false
    if (before !== undefined && this.#clock() >= before) return false
    if (silent && this.#lives(silent.worker, this.#startedAt.get(next.id) ?? 0, silent.leaseMs))
      return false
    this.#write(next, entry)
    return true
  }

  async replaceAll([first, ...rest]: readonly Transition[]): Promise<boolean> {
    if (!first) return false
    if (rest.some(({ next }, index) => next.version !== first.next.version + index + 1))
      throw new Error('The transitions of an approval must be consecutive.')
    return this.#replace(first) && rest.every((transition) => this.#replace(transition))
  }

  async list({ limit, after, ...filter }: ApprovalFilter): Promise<Approval[]> {
    const ids = [...this.#approvals.keys()]
    const known = new Set(ids.slice(0, after === undefined ? 0 : ids.indexOf(after) + 1))
    const rest = this.#select(filter).filter(({ id }) => !known.has(id))
    return structuredClone(rest.slice(0, limit))
  }

  async listVisible(filter: VisibleFilter): Promise<Approval[]> {
    const { reader, toolName, requester, limit, after, appName, states } = filter
    const all = this.#select({ appName, ...(states && { states }) }).toReversed()
    const ids = [...this.#approvals.keys()].toReversed()
    const start = after === undefined ? 0 : ids.indexOf(after) + 1
    if (after !== undefined && start === 0) return []
    const known = new Set(ids.slice(0, start))
    const found = all.filter(
      (approval) =>
        !known.has(approval.id) &&
        maySee(approval, reader) &&
        (toolName === undefined || approval.toolName === toolName) &&
        (requester === undefined || approval.chat.principalId === requester),
    )
    return structuredClone(found.slice(0, limit))
  }

  async due(limit: number): Promise<Approval[]> {
    const now = this.#clock()
    return this.#select({ states: ['requested'] })
      .filter(({ deadline }) => deadline <= now)
      .toSorted((one, other) => one.deadline - other.deadline)
      .slice(0, limit)
  }

  async unreported({
    appName,
    leaseMs,
    except = [],
    limit,
  }: UnreportedFilter): Promise<Approval[]> {
    const before = this.#leaseClock() - leaseMs
    const found = this.#select({ appName }).filter(({ id, chat, state }) => {
      const since = this.#unreportedSince.get(id)
      if (since === undefined || except.includes(id) || this.#isHeld(chat, leaseMs)) return false
      return state.name === 'approved' || since <= before
    })
    return structuredClone(inTurns(found).slice(0, limit))
  }

  async markReported(chat: AppChatRef, toolCallIds: readonly string[]): Promise<void> {
    for (const toolCallId of toolCallIds) {
      const id = this.#byCall.get(callKey(chat, toolCallId)) ?? ''
      if (this.#approvals.get(id)?.state.name !== 'approved') this.#unreportedSince.delete(id)
    }
  }

  async lastSeq(): Promise<number> {
    return this.#audit.length
  }

  async *audit(filter: AuditFilter) {
    const { appName, approvalId, chat, from = -Infinity, to = Infinity, after = 0 } = filter
    let left = filter.limit ?? Infinity
    for (const record of this.#audit.slice(after)) {
      if (appName !== undefined && record.chat.appName !== appName) continue
      if (approvalId !== undefined && record.approvalId !== approvalId) continue
      if (chat !== undefined && !isSameChat(record.chat, chat)) continue
      if (record.at < from || record.at >= to) continue
      if (left-- <= 0) return
      yield structuredClone(record)
    }
  }

  async heartbeat(worker: string): Promise<void> {
    this.#beats.set(worker, this.#leaseClock())
  }

  async stale(leaseMs: number): Promise<Approval[]> {
    return this.#select({ states: ['executing'] }).filter(
      ({ id, state }) =>
        state.name === 'executing' &&
        !this.#lives(state.worker, this.#startedAt.get(id) ?? 0, leaseMs),
    )
  }

  async lockChat(chat: AppChatRef, lock: ChatLock): Promise<boolean> {
    const held = this.#locks.get(callKey(chat))
    if (held?.worker !== lock.worker && this.#isHeld(chat, lock.leaseMs)) return false
    this.#locks.set(callKey(chat), { ...lock, chat, at: this.#leaseClock() })
    return true
  }

  async findLockHolder(chat: AppChatRef): Promise<ChatLockHolder | undefined> {
    const held = this.#locks.get(callKey(chat))
    if (!held) return undefined
    const { token, background, worker, at } = held
    return { token, background, lastSeenAt: this.#lastSign(worker, at) }
  }

  async listLocks(worker: string): Promise<OwnLock[]> {
    const held = [...this.#locks.values()].filter((lock) => lock.worker === worker)
    return held.map(({ chat, token }) => ({ chat, token }))
  }

  async listLockedByOthers(filter: LockedChatsFilter): Promise<string[]> {
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

  async unlockChat(chat: AppChatRef, token: string): Promise<void> {
    if (this.#locks.get(callKey(chat))?.token === token) this.#locks.delete(callKey(chat))
  }

  async deleteChat(chat: AppChatRef, reason: string): Promise<Approval[]> {
    const open = this.#select({ chat, states: ['requested', 'approved'] })
    const cancelled = open.flatMap((approval) => {
      const result = nextApproval(approval, { type: 'cancel', reason }, this.#clock())
      if (isRefusal(result)) return []
      this.#write(result.next, result.entry)
      return [result.next]
    })
    for (const { id } of this.#select({ chat })) this.#unreportedSince.delete(id)
    return cancelled
  }

  #write(approval: Approval, entry: AuditEntry): void {
    this.#approvals.set(approval.id, structuredClone(approval))
    if (isUnreported(approval)) this.#unreportedSince.set(approval.id, this.#leaseClock())
    else this.#unreportedSince.delete(approval.id)
    if (approval.state.name === 'executing') this.#startedAt.set(approval.id, this.#leaseClock())
    else this.#startedAt.delete(approval.id)
    this.#audit.push({ ...structuredClone(entry), seq: this.#audit.length + 1 })
  }

  #select(filter: Omit<ApprovalFilter, 'limit' | 'after'>): Approval[] {
    const { appName, principalId, chat, states, kind, waitsFor } = filter
    return [...this.#approvals.values()].filter(
      (approval) =>
        (appName === undefined || approval.chat.appName === appName) &&
        (principalId === undefined || approval.chat.principalId === principalId) &&
        (chat === undefined || isSameChat(approval.chat, chat)) &&
        (states === undefined || states.includes(approval.state.name)) &&
        (kind === undefined || approval.terms.kind === kind) &&
        (waitsFor === undefined || isWaitingFor(approval, waitsFor)),
    )
  }

  #isHeld(chat: AppChatRef, leaseMs: number): boolean {
    const held = this.#locks.get(callKey(chat))
    return held !== undefined && this.#lives(held.worker, held.at, leaseMs)
  }

  #lives(worker: string, seenAt: number, leaseMs: number): boolean {
    return this.#lastSign(worker, seenAt) > this.#leaseClock() - leaseMs
  }

  #lastSign(worker: string, seenAt: number): number {
    return Math.max(this.#beats.get(worker) ?? 0, seenAt)
  }
}

/** Sorts approvals so that principals take turns. */
function inTurns(approvals: readonly Approval[]): Approval[] {
  const seen = new Map<string, number>()
  const ranked = approvals.map((approval) => {
    const { principalId } = approval.chat
    const rank = seen.get(principalId) ?? 0
    seen.set(principalId, rank + 1)
    return { approval, rank }
  })
  return ranked.toSorted((one, other) => one.rank - other.rank).map(({ approval }) => approval)
}

function callKey({ appName, principalId, chatId }: AppChatRef, toolCallId?: string): string {
  return JSON.stringify([appName, principalId, chatId, toolCallId])
}

function isSameChat(one: AppChatRef, other: AppChatRef): boolean {
  return callKey(one) === callKey(other)
}

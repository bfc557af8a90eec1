import { setImmediate as yieldToEventLoop } from 'node:timers/promises'

import type {
  ApprovalFilter,
  ApprovalStore,
  AuditCheck,
  AuditFilter,
  AuditVerification,
  PendingQuota,
  ReadApproval,
  UnreportedFilter,
  VisibleFilter,
} from '../../approvals/approval-store.ts'
import type {
  ChatLock,
  ChatLockHolder,
  LeaseOptions,
  LeaseRenewal,
  LockedChatsFilter,
  OwnLock,
  WorkerLease,
} from '../../locks/lock-store.ts'
import type { Approval } from '../../approvals/approval.ts'
import type { AuditEntry, AuditRecord } from '../../approvals/audit-entry.ts'
import type { FeatureWrite } from '../../approvals/feature-parts.ts'
import { cancelApproval, isUnreported, type Transition } from '../../approvals/next-approval.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import type { ApprovalRow, AuditRow } from '../rows.ts'
import {
  deciderNames,
  decodeApproval,
  decodeAudit,
  decodeTimed,
  encodeAsked,
  encodeMoved,
  decodeWorkers,
  MAX_GAP_MS,
  decodeLock,
} from '../rows.ts'
import { verifyChain } from '../audit-chain.ts'
import { chatColumns, checkName, isStorable, LockedChats } from '../keys.ts'
import { orRefused, RefusedWrite } from '../refused-write.ts'
import { StoreError } from '../store-error.ts'
import { encodeJson } from '../stored-json.ts'
import type { ApprovalStatements } from './approval-sql.ts'
import {
  auditConditions,
  listConditions,
  visibleQuery,
  DATABASE_CLOCK,
  prepareApprovalStatements,
  selectApprovals,
  auditReader,
} from './approval-sql.ts'
import type { Connection, Statement } from './connection.ts'
import { prepareSqliteWrites } from '../features.ts'
import type { LeaseClock, ThreadedRenewal } from './leases.ts'
import { prepareTick, renewInThread, sharedLeaseClock } from './leases.ts'
import type { SqliteSessionService } from './sqlite-session-service.ts'

export interface SqliteApprovalStoreOptions {
  /** The SQL expression of the clock for deadlines, in ms. Default: the clock of SQLite. */
  readonly clock?: string
  readonly leaseClock?: LeaseClock
  /** The locks of this process, shared with the session service. */
  readonly held?: LockedChats
  /** Reads the session of a chat that is locked. Without it, sessions are read later. */
  readonly sessions?: Pick<SqliteSessionService, 'readLocked' | 'dropLocked'>
  /** The database file, if other processes can open it. Another thread then renews leases. */
  readonly path?: string
}

/** Stores approvals in SQLite. Each transition is one durable transaction with its audit entry. */
export class SqliteApprovalStore implements ApprovalStore {
  readonly #connection: Connection
  readonly #clock: string
  readonly #statements: ApprovalStatements
  readonly #writeFeature: (write: FeatureWrite) => boolean
  readonly #lists = new Map<string, Statement<ApprovalRow>>()
  readonly #audits = new Map<string, Statement<AuditRow>>()
  readonly #leaseNow: LeaseClock
  readonly #tick: (maxGapMs: number) => void
  readonly #held: LockedChats
  readonly #sessions: SqliteApprovalStoreOptions['sessions']
  readonly #path: string | undefined
  /** The renewals of leases, by worker. */
  readonly #renewals = new Map<string, ThreadedRenewal>()

  constructor(connection: Connection, options: SqliteApprovalStoreOptions = {}) {
    const {
      clock = DATABASE_CLOCK,
      leaseClock = sharedLeaseClock(connection),
      held = new LockedChats(),
    } = options
    this.#connection = connection
    this.#clock = clock
    this.#statements = prepareApprovalStatements(connection, clock)
    this.#writeFeature = prepareSqliteWrites(connection, clock)
    this.#leaseNow = leaseClock
    this.#tick = prepareTick(connection)
    this.#held = held
    this.#sessions = options.sessions
    this.#path = options.path
  }

  async now(): Promise<number> {
    return this.#now()
  }

  async insert(
    approval: Approval,
    entry: AuditEntry,
    quota: PendingQuota,
    decided: readonly Transition[] = [],
  ): ReturnType<ApprovalStore['insert']> {
    const { id, chat, toolCallId, deadline, version, state } = approval
    const columns = chatColumns(chat)
    const row = [
      ...columns,
      checkName('toolCallId', toolCallId),
      checkName('id', id),
      deadline,
      version,
      state.name,
      encodeAsked(approval),
      encodeMoved(approval),
    ]
    const inserted = this.#connection.write(() => {
      const [pending] = this.#statements.countPending.rows(...columns)
      const isFull =
        pending !== undefined &&
        (pending.of_chat >= quota.perChat || pending.of_principal >= quota.perPrincipal)
      if (this.#statements.get.rows(id).length > 0) return 'exists'
      if (this.#statements.findByCall.rows(...columns, toolCallId).length > 0) return 'exists'
      if (isFull && decided.length === 0) return 'too-many-pending'
      this.#statements.insert.run(...row)
      this.#insertDeciders(approval)
      this.#statements.appendAudit([entry])
      if (decided.length > 0 && !this.#replaceAll(decided)) throw new RefusedWrite()
      return 'inserted'
    })
    return orRefused('refused', inserted)
  }

  async get(id: string): Promise<Approval | undefined> {
    // Ids come from clients. An id that cannot be stored does not exist.
    if (!isStorable(id)) return undefined
    return (await this.#statements.get.select(id)).map(decodeApproval)[0]
  }

  async getWithTime(id: string): Promise<ReadApproval> {
    const rows = await this.#statements.getWithTime.select(isStorable(id) ? id : '')
    return decodeTimed(rows[0])
  }

  async findByCall(chat: AppChatRef, toolCallId: string): Promise<Approval | undefined> {
    if (!isStorable(toolCallId)) return undefined
    const rows = await this.#statements.findByCall.select(...chatColumns(chat), toolCallId)
    return rows.map(decodeApproval)[0]
  }

  async replace(transition: Transition): Promise<boolean> {
    return this.replaceAll([transition])
  }

  async replaceAll(transitions: readonly Transition[]): Promise<boolean> {
    return orRefused(
      false,
      this.#connection.write(() => this.#replaceAll(transitions)),
    )
  }

  async list(filter: ApprovalFilter): Promise<Approval[]> {
    const { conditions, values } = listConditions(filter)
    const statement = memoize(this.#lists, conditions, () =>
      selectApprovals(this.#connection, `${conditions} ORDER BY seq LIMIT ?`),
    )
    return (await statement.select(...values, filter.limit)).map(decodeApproval)
  }

  async listVisible(filter: VisibleFilter): Promise<Approval[]> {
    if (![filter.after, filter.requester].every((name = '') => isStorable(name))) return []
    const { conditions, values } = visibleQuery(filter)
    const statement = memoize(this.#lists, conditions, () =>
      selectApprovals(this.#connection, conditions),
    )
    return (await statement.select(...values)).map(decodeApproval)
  }

  async due(limit: number): Promise<Approval[]> {
    return (await this.#statements.due.select(limit)).map(decodeApproval)
  }

  async unreported({
    appName,
    leaseMs,
    except = [],
    limit,
  }: UnreportedFilter): Promise<Approval[]> {
    const before = this.#leaseNow() - leaseMs
    const values = [appName, before, encodeJson(except), limit]
    return (await this.#statements.unreported.select(...values)).map(decodeApproval)
  }

  async markReported(chat: AppChatRef, toolCallIds: readonly string[]): Promise<void> {
    const key = chatColumns(chat)
    // A power failure may lose the events that report the outcome. It then loses this record too, and the outcome is
    // reported again.
    await this.#connection.write(() => {
      for (const id of toolCallIds) this.#statements.markReported.run(...key, id)
    }, 'process-death')
  }

  async *audit(filter: AuditFilter): AsyncIterable<AuditRecord> {
    const { conditions, values } = auditConditions(filter)
    const statement = memoize(this.#audits, conditions, () =>
      this.#connection.prepare<AuditRow>(readAudit(filter, conditions)),
    )
    const { from = -Infinity, to = Infinity } = filter
    const isTimed = from > -Infinity || to < Infinity
    let { after = 0, limit: left = Infinity } = filter
    while (left > 0) {
      const size = isTimed ? AUDIT_PAGE : Math.min(left, AUDIT_PAGE)
      const rows = await statement.select(...values, after, size)
      for (const row of rows) {
        const record = decodeAudit(row)
        // There is no index on the time, and the clock of the computer may have been set back.
        if (record.at < from || record.at >= to) continue
        yield record
        left -= 1
        if (left <= 0) return
      }
      if (rows.length < size) return
      after = rows.at(-1)?.seq ?? after
      await yieldToEventLoop()
    }
  }

  async countPending(appName: string, limit: number): Promise<number> {
    return (await this.#statements.countAllPending.select(appName, limit))[0]?.pending ?? 0
  }

  async lastSeq(): Promise<number> {
    return (await this.#statements.lastSeq.select())[0]?.seq ?? 0
  }

  verifyAudit(check?: AuditCheck): Promise<AuditVerification> {
    return verifyChain(auditReader(this.#connection), check)
  }

  async heartbeat(worker: string, maxGapMs = MAX_GAP_MS): Promise<void> {
    checkName('worker', worker)
    await this.#connection.write(() => {
      this.#tick(maxGapMs)
      const now = this.#leaseNow()
      this.#statements.heartbeat.run(worker, now)
      this.#statements.forgetWorkers.run(now)
    }, 'process-death')
    this.#renewals.get(worker)?.recordRenewal()
  }

  async tickLeases(maxGapMs: number): Promise<void> {
    // Usually nothing waits, and this query takes no lock.
    if ((await this.#statements.hasLeases.select()).length === 0) return
    await this.#connection.write(() => this.#tick(maxGapMs), 'process-death')
  }

  async endLease(worker: string): Promise<void> {
    checkName('worker', worker)
    await this.#connection.write(
      () => this.#statements.endLease.run(worker, this.#leaseNow()),
      'process-death',
    )
  }

  async hasEnded(worker: string): Promise<boolean> {
    return (await this.#statements.hasEnded.select(worker)).length > 0
  }

  startLeaseRenewal(lease: LeaseOptions): LeaseRenewal {
    if (this.#path === undefined) return NO_RENEWAL
    const renewal = this.#renewals.get(lease.worker) ?? renewInThread(this.#path, lease)
    this.#renewals.set(lease.worker, renewal)
    return renewal
  }

  /** Stops the renewal of leases. */
  async close(): Promise<void> {
    await Promise.all([...this.#renewals.values()].map((renewal) => renewal.close()))
    this.#renewals.clear()
  }

  async stale(leaseMs: number): Promise<Approval[]> {
    return (await this.#statements.stale.select(this.#leaseNow() - leaseMs)).map(decodeApproval)
  }

  async lockChat(chat: AppChatRef, lock: ChatLock): Promise<boolean> {
    const { token, leaseMs, reads } = lock
    const { appName, principalId: userId, chatId: sessionId } = chat
    const key = chatColumns(chat)
    const names = [checkName('worker', lock.worker), checkName('token', token)]
    const row = [...key, ...names, Number(lock.background)]
    // Locks and leases only concern running processes. After a power failure there are none.
    const isLocked = await this.#connection.writeTogether(
      key,
      () => this.#statements.lockChat.run(...row, this.#leaseNow(), leaseMs) === 1,
    )
    if (!isLocked) return false
    this.#held.hold(key, lock)
    try {
      if (reads) this.#sessions?.readLocked({ appName, userId, sessionId })
    } catch {
      // The turn reads the session again, reports the error and unlocks the chat.
    }
    return true
  }

  async findLockHolder(chat: AppChatRef): Promise<ChatLockHolder | undefined> {
    const [held] = await this.#statements.findLockHolder.select(...chatColumns(chat))
    if (!held) return undefined
    return { token: held.token, background: held.background === 1, lastSeenAt: held.sign_at }
  }

  async listLocks(worker: string): Promise<OwnLock[]> {
    return (await this.#statements.listLocks.select(worker)).map(decodeLock)
  }

  async listLockedByOthers({
    appName,
    principalId,
    worker,
    leaseMs,
  }: LockedChatsFilter): Promise<string[]> {
    const since = this.#leaseNow() - leaseMs
    const rows = await this.#statements.listLockedByOthers.select(
      appName,
      principalId,
      worker,
      since,
    )
    return rows.map((row) => row.chat_id)
  }

  async listWorkers(): Promise<WorkerLease[]> {
    return decodeWorkers(await this.#statements.listWorkers.select(), this.#leaseNow('uncapped'))
  }

  async unlockChat(chat: AppChatRef, token: string): Promise<void> {
    const key = chatColumns(chat)
    if (this.#held.release(key, token)) this.#sessions?.dropLocked(key)
    const row = [...key, checkName('token', token)]
    await this.#connection.write(() => this.#statements.unlockChat.run(...row), 'process-death')
  }

  async deleteChat(chat: AppChatRef, reason: string): Promise<Approval[]> {
    const key = chatColumns(chat)
    return this.#connection.write(() => {
      const open = this.#statements.findOpen.rows(...key).map(decodeApproval)
      const cancelled = open.flatMap((approval) => {
        const transition = cancelApproval(approval, reason, this.#now())
        return transition && this.#replaceAll([transition]) ? [transition.next] : []
      })
      this.#statements.markAllReported.run(...key)
      return cancelled
    })
  }

  #now(): number {
    // SQLite reads the same clock.
    if (this.#clock === DATABASE_CLOCK) return Date.now()
    return this.#statements.now.rows()[0]?.now ?? Number.NaN
  }

  /** Stores consecutive transitions of an approval, the deciders after them, and their audit entries. */
  #replaceAll(transitions: readonly Transition[]): boolean {
    const [first] = transitions
    const last = transitions.at(-1)
    if (!first || !last) return false
    if (transitions.some(({ next }, index) => next.version !== first.next.version + index))
      throw new StoreError('invalid', 'The transitions of an approval must be consecutive.')
    if (!this.#replace(first, last.next)) return false
    // The vote that completes a step changes the deciders.
    this.#statements.deleteDeciders.run(last.next.id)
    this.#insertDeciders(last.next)
    this.#statements.appendAudit(transitions.map(({ entry }) => entry))
    for (const { writes } of transitions)
      if (writes && !this.#writeFeature(writes)) throw new RefusedWrite()
    return true
  }

  /** Stores an approval after its last transition, if the first one is possible. */
  #replace({ next: { version: from }, before, silent }: Transition, next: Approval): boolean {
    const { id, version, state } = next
    // Read within the write transaction, so that it is later than all stored times.
    const now = this.#leaseNow()
    if (silent) {
      const { worker, leaseMs } = silent
      if (this.#statements.isSilent.rows(id, worker, now - leaseMs).length === 0) return false
    }
    const [worker, startedAt] =
      state.name === 'executing' ? [checkName('worker', state.worker), now] : [null, null]
    const row = [id, version, state.name, worker, startedAt, isUnreported(next) ? now : null]
    return this.#statements.replace.run(...row, encodeMoved(next), before ?? null, from - 1) > 0
  }

  #insertDeciders(approval: Approval): void {
    for (const name of deciderNames(approval)) this.#statements.insertDecider.run(name, approval.id)
  }
}

const AUDIT_PAGE = 500

/** No other process can open the store, so none can take over a lease. */
const NO_RENEWAL: LeaseRenewal = { setBusy: () => undefined }

function readAudit({ approvalId, chat }: AuditFilter, conditions: string): string {
  // CROSS JOIN fixes the order: the whole record is read along `seq`, not sorted again for each page.
  const join = approvalId === undefined && chat === undefined ? 'CROSS JOIN' : 'JOIN'
  return `
    SELECT approval_audit.seq, entry
    FROM approval_audit ${join} approvals ON approvals.id = approval_id
    WHERE ${conditions} AND approval_audit.seq > ? ORDER BY approval_audit.seq LIMIT ?`
}

function memoize<Value>(known: Map<string, Value>, key: string, make: () => Value): Value {
  const value = known.get(key) ?? make()
  known.set(key, value)
  return value
}

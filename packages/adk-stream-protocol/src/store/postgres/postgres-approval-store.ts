import { createHash, randomUUID } from 'node:crypto'

import type {
  ApprovalFilter,
  ApprovalStore,
  AuditCheck,
  AuditFilter,
  AuditHead,
  AuditVerification,
  PendingQuota,
  ReadApproval,
  UnreportedFilter,
  VisibleFilter,
} from '../../approvals/approval-store.ts'
import type {
  ChatLock,
  ChatLockHolder,
  LockedChatsFilter,
  OwnLock,
  WorkerLease,
} from '../../locks/lock-store.ts'
import type { Approval } from '../../approvals/approval.ts'
import type { AuditEntry, AuditRecord } from '../../approvals/audit-entry.ts'
import { cancelApproval, isUnreported, type Transition } from '../../approvals/next-approval.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import type { ApprovalRow, AuditRow, OwnLockRow, TimedRow, WorkerRow } from '../rows.ts'
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
import { type ChainedRow, verifyChain } from '../audit-chain.ts'
import type { LockedChats } from '../keys.ts'
import { chatColumns, checkName, isStorable } from '../keys.ts'
import { orRefused, RefusedWrite } from '../refused-write.ts'
import { StoreError } from '../store-error.ts'
import { encodeJson } from '../stored-json.ts'
import {
  approvalSql,
  listApprovals,
  listVisible,
  readAudit,
  type ApprovalSql,
} from './approval-sql.ts'
import type { Clocks, Database, RunStatement } from './database.ts'
import { preparePostgresWrites } from '../features.ts'
import { violatedConstraint } from './postgres-errors.ts'
import type { PostgresSessionService, SessionRow } from './postgres-session-service.ts'

export interface PostgresApprovalStoreOptions {
  /** The quoted name of the schema. */
  readonly schema: string
  readonly clocks: Clocks
  /** The locks of this process, shared with the session service. */
  readonly held: LockedChats
  /** Receives the sessions that are read when their chats are locked. */
  readonly sessions: Pick<PostgresSessionService, 'positionOf' | 'keepLocked' | 'dropLocked'>
  /** Connections for decisions and leases, which must not wait for other work. */
  readonly decisions: Database
  /** Connections for lists and for the audit record. */
  readonly reads: Database
}

/** Stores approvals in PostgreSQL. Each transition is one statement with its audit entry. */
export class PostgresApprovalStore implements ApprovalStore {
  readonly #schema: string
  readonly #sql: ApprovalSql
  readonly #writeFeature: ReturnType<typeof preparePostgresWrites>
  readonly #held: LockedChats
  readonly #sessions: PostgresApprovalStoreOptions['sessions']
  readonly #decisions: Database
  readonly #reads: Database

  constructor({ schema, clocks, held, sessions, decisions, reads }: PostgresApprovalStoreOptions) {
    this.#schema = schema
    this.#sql = approvalSql(schema, clocks)
    this.#writeFeature = preparePostgresWrites(schema, clocks)
    this.#held = held
    this.#sessions = sessions
    this.#decisions = decisions
    this.#reads = reads
  }

  now(): Promise<number> {
    return this.#decisions.retry((run) => this.#now(run))
  }

  async insert(
    approval: Approval,
    entry: AuditEntry,
    quota: PendingQuota,
    decided: readonly Transition[] = [],
  ): ReturnType<ApprovalStore['insert']> {
    const { id, chat, toolCallId, deadline, version, state } = approval
    const writeId = randomUUID()
    const row = [
      ...chatColumns(chat),
      checkName('toolCallId', toolCallId),
      checkName('id', id),
      deadline,
      version,
      state.name,
      [...deciderNames(approval)],
      encodeAsked(approval),
      encodeMoved(approval),
      toLimit(decided.length > 0 ? Infinity : quota.perChat),
      toLimit(decided.length > 0 ? Infinity : quota.perPrincipal),
      entry.at,
      encodeJson(entry),
      writeId,
    ]
    const begin = `BEGIN; SELECT pg_advisory_xact_lock(${lockKey(this.#schema, chat)})`
    const insert = () =>
      this.#decisions.transaction(async (run, attempt) => {
        const [result] = await run<{ known: boolean; added: boolean }>(this.#sql.insert, row)
        if (result?.added === true) {
          if (decided.length > 0) await this.#replaceIn(run, decided)
          return 'inserted'
        }
        if (result?.known !== true) return 'too-many-pending'
        // An earlier attempt may have been committed although its acknowledgement was lost.
        const isOwn = attempt > 0 && (await this.#hasWritten(run, [id, version, writeId]))
        return isOwn ? 'inserted' : 'exists'
      }, begin)
    try {
      return await orRefused('refused', insert())
    } catch (error) {
      // Another principal has used the same id at the same time.
      if (error instanceof Error && violatedConstraint(error.cause) !== undefined) return 'exists'
      throw error
    }
  }

  async get(id: string): Promise<Approval | undefined> {
    // Ids come from clients. An id that cannot be stored does not exist.
    if (!isStorable(id)) return undefined
    return (await this.#decisions.query<ApprovalRow>(this.#sql.get, [id])).map(decodeApproval)[0]
  }

  async getWithTime(id: string): Promise<ReadApproval> {
    const values = [isStorable(id) ? id : '']
    return decodeTimed((await this.#decisions.query<TimedRow>(this.#sql.getWithTime, values))[0])
  }

  async findByCall(chat: AppChatRef, toolCallId: string): Promise<Approval | undefined> {
    if (!isStorable(toolCallId)) return undefined
    const values = [...chatColumns(chat), toolCallId]
    const rows = await this.#decisions.query<ApprovalRow>(this.#sql.findByCall, values)
    return rows.map(decodeApproval)[0]
  }

  async replace(transition: Transition): Promise<boolean> {
    return this.replaceAll([transition])
  }

  async replaceAll(transitions: readonly Transition[]): Promise<boolean> {
    const [first] = transitions
    if (first === undefined) return true
    if (transitions.some(({ writes }) => writes)) return this.#replaceWithWrites(transitions)
    const { text, values, write } = this.#toStatement(first, transitions)
    return this.#change(text, values, write)
  }

  /** Stores transitions, and what features add to them. */
  async #replaceWithWrites(transitions: readonly Transition[]): Promise<boolean> {
    const [first] = transitions
    const statement = first && this.#toStatement(first, transitions)
    const replaced = this.#decisions.transaction(async (run, attempt) => {
      // An earlier attempt may have been committed although its acknowledgement was lost.
      if (statement && attempt > 0 && (await this.#hasWritten(run, statement.write))) return true
      await this.#replaceIn(run, transitions, statement)
      return true
    })
    return orRefused(false, replaced)
  }

  /** Stores transitions in a transaction. Throws if a part of them is not possible. */
  async #replaceIn(
    run: RunStatement,
    transitions: readonly Transition[],
    statement = transitions[0] && this.#toStatement(transitions[0], transitions),
  ): Promise<void> {
    if (statement && (await run(statement.text, statement.values)).length === 0)
      throw new RefusedWrite()
    for (const { writes } of transitions)
      if (writes && !(await this.#writeFeature(run, writes))) throw new RefusedWrite()
  }

  /** Returns the statement that stores consecutive transitions of one approval. `write` identifies its first audit entry. */
  #toStatement(first: Transition, transitions: readonly Transition[]): ChangeStatement {
    const last = transitions.at(-1) ?? first
    if (transitions.length === 1) {
      const writeId = randomUUID()
      const { id, version } = first.next
      const write = [id, version, writeId]
      return { text: this.#sql.replace, values: toRow(first, writeId), write }
    }
    if (transitions.some(({ next }, index) => next.version !== first.next.version + index))
      throw new StoreError('invalid', 'The transitions of an approval must be consecutive.')
    const writeIds = transitions.map(() => randomUUID())
    const { before, silent } = first
    const row = toRow(
      { ...last, ...(before !== undefined && { before }), ...(silent && { silent }) },
      '',
    )
    const entries = transitions.map(({ entry }) => entry)
    const lists = [
      entries.map(({ at }) => at),
      entries.map((entry) => encodeJson(entry)),
      writeIds,
      entries.map(({ version }) => version),
    ]
    const values = [...row.slice(0, -lists.length + 1), ...lists]
    const text = this.#sql.replaceSeveral(transitions.length)
    return { text, values, write: [first.next.id, first.next.version, writeIds[0]] }
  }

  async list(filter: ApprovalFilter): Promise<Approval[]> {
    const { text, values } = listApprovals(this.#schema, filter)
    return (await this.#reads.query<ApprovalRow>(text, values)).map(decodeApproval)
  }

  async listVisible(filter: VisibleFilter): Promise<Approval[]> {
    if (![filter.after, filter.requester].every((name = '') => isStorable(name))) return []
    const { text, values } = listVisible(this.#schema, filter)
    return (await this.#reads.query<ApprovalRow>(text, values)).map(decodeApproval)
  }

  due(limit: number): Promise<Approval[]> {
    return this.#select(this.#sql.due, [limit])
  }

  unreported({ appName, leaseMs, except = [], limit }: UnreportedFilter): Promise<Approval[]> {
    return this.#select(this.#sql.unreported, [appName, leaseMs, except, limit])
  }

  async markReported(chat: AppChatRef, toolCallIds: readonly string[]): Promise<void> {
    const ids = toolCallIds.filter(isStorable)
    await this.#decisions.query(this.#sql.markReported, [...chatColumns(chat), ids])
  }

  async *audit(filter: AuditFilter): AsyncIterable<AuditRecord> {
    let { after = 0, limit: left = Infinity } = filter
    while (left > 0) {
      const size = Math.min(left, AUDIT_PAGE)
      const { text, values } = readAudit(this.#schema, { ...filter, after }, size)
      const rows = await this.#reads.query<AuditRow>(text, values)
      for (const row of rows) yield decodeAudit(row)
      if (rows.length < size) return
      left -= rows.length
      after = rows.at(-1)?.seq ?? after
    }
  }

  async countPending(appName: string, limit: number): Promise<number> {
    // On a reserved connection: metrics are needed most when turns use all others.
    const values = [appName, limit]
    const [row] = await this.#decisions.query<{ pending: number }>(this.#sql.countPending, values)
    return row?.pending ?? 0
  }

  async lastSeq(): Promise<number> {
    return (await this.#decisions.query<{ seq: number }>(this.#sql.lastSeq))[0]?.seq ?? 0
  }

  verifyAudit(check?: AuditCheck): Promise<AuditVerification> {
    return verifyChain(
      {
        readCounter: () => this.lastSeq(),
        readPage: (after) => this.#reads.query<ChainedRow>(this.#sql.auditPage, [after]),
        readCut: async () => (await this.#reads.query<AuditHead>(this.#sql.readCut))[0],
      },
      check,
    )
  }

  async heartbeat(worker: string, maxGapMs = MAX_GAP_MS): Promise<void> {
    await this.#decisions.query(this.#sql.heartbeat, [checkName('worker', worker), maxGapMs])
  }

  async tickLeases(maxGapMs: number): Promise<void> {
    await this.#decisions.query(this.#sql.tick, [maxGapMs])
  }

  async endLease(worker: string): Promise<void> {
    await this.#decisions.query(this.#sql.endLease, [checkName('worker', worker)])
  }

  async hasEnded(worker: string): Promise<boolean> {
    return (await this.#decisions.query(this.#sql.hasEnded, [worker])).length > 0
  }

  stale(leaseMs: number): Promise<Approval[]> {
    return this.#select(this.#sql.stale, [leaseMs])
  }

  async lockChat(chat: AppChatRef, lock: ChatLock): Promise<boolean> {
    const { token, leaseMs, background } = lock
    const key = chatColumns(chat)
    const names = [checkName('worker', lock.worker), checkName('token', token)]
    const row = [...key, ...names, background, leaseMs]
    if (!lock.reads) {
      const locked = await this.#decisions.query(this.#sql.lockChat, row)
      if (locked.length === 0) return false
      this.#held.hold(key, lock)
      return true
    }
    const position = this.#sessions.positionOf(key)
    const values = [...row, position.epoch, position.seq]
    const rows = await this.#decisions.query<SessionRow | LockedRow>(this.#sql.lockAndRead, values)
    if (rows.length === 0) return false
    this.#held.hold(key, lock)
    const { appName, principalId: userId, chatId: sessionId } = chat
    const found = rows.filter((each) => each.seq !== null)
    this.#sessions.keepLocked({ appName, userId, sessionId }, position, found)
    return true
  }

  async findLockHolder(chat: AppChatRef): Promise<ChatLockHolder | undefined> {
    const rows = await this.#decisions.query<LockRow>(this.#sql.findLockHolder, chatColumns(chat))
    const [held] = rows
    return held && { token: held.token, background: held.background, lastSeenAt: held.last_seen_at }
  }

  async listLocks(worker: string): Promise<OwnLock[]> {
    return (await this.#decisions.query<OwnLockRow>(this.#sql.listLocks, [worker])).map(decodeLock)
  }

  async listLockedByOthers(filter: LockedChatsFilter): Promise<string[]> {
    const { appName, principalId, worker, leaseMs } = filter
    const values = [appName, principalId, worker, leaseMs]
    const rows = await this.#decisions.query<{ chat_id: string }>(
      this.#sql.listLockedByOthers,
      values,
    )
    return rows.map((row) => row.chat_id)
  }

  async listWorkers(): Promise<WorkerLease[]> {
    const rows = await this.#decisions.query<WorkerRow & { readonly now: number }>(
      this.#sql.listWorkers,
      [],
    )
    return decodeWorkers(rows, rows[0]?.now ?? 0)
  }

  async unlockChat(chat: AppChatRef, token: string): Promise<void> {
    const key = chatColumns(chat)
    this.#held.release(key, token)
    this.#sessions.dropLocked(key)
    await this.#decisions.query(this.#sql.unlockChat, [...key, checkName('token', token)])
  }

  async deleteChat(chat: AppChatRef, reason: string): Promise<Approval[]> {
    const key = chatColumns(chat)
    return this.#decisions.transaction(async (run) => {
      // Locks all approvals before the audit record, like every other writer.
      const open = (await run<ApprovalRow>(this.#sql.lockOpen, key)).map(decodeApproval)
      const cancelled: Approval[] = []
      for (const approval of open) {
        const transition = cancelApproval(approval, reason, await this.#now(run))
        if (transition === undefined) continue
        await run(this.#sql.replace, toRow(transition, randomUUID()))
        cancelled.push(transition.next)
      }
      await run(this.#sql.markAllReported, key)
      return cancelled
    })
  }

  async #now(run: RunStatement): Promise<number> {
    return (await run<{ now: number }>(this.#sql.now))[0]?.now ?? Number.NaN
  }

  async #select(text: string, values: readonly unknown[]): Promise<Approval[]> {
    return (await this.#decisions.query<ApprovalRow>(text, values)).map(decodeApproval)
  }

  /** Changes an approval. `write` identifies the audit entry of the change. */
  #change(text: string, values: readonly unknown[], write: readonly unknown[]): Promise<boolean> {
    return this.#decisions.retry(async (run, attempt) => {
      if ((await run(text, values)).length > 0) return true
      // An earlier attempt may have been committed although its acknowledgement was lost.
      return attempt > 0 && this.#hasWritten(run, write)
    })
  }

  async #hasWritten(run: RunStatement, write: readonly unknown[]): Promise<boolean> {
    return (await run(this.#sql.wrote, write)).length > 0
  }
}

/** A statement that changes an approval. */
interface ChangeStatement {
  readonly text: string
  readonly values: readonly unknown[]
  readonly write: readonly unknown[]
}

/** The only row of a chat that was locked and has no session. */
interface LockedRow {
  readonly seq: null
}

interface LockRow {
  readonly token: string
  readonly background: boolean
  readonly last_seen_at: number
}

const AUDIT_PAGE = 500

function toRow({ next, entry, before, silent }: Transition, writeId: string): unknown[] {
  const { id, version, state } = next
  return [
    id,
    version,
    state.name,
    state.name === 'executing' ? checkName('worker', state.worker) : null,
    isUnreported(next),
    encodeMoved(next),
    [...deciderNames(next)],
    before ?? null,
    silent?.worker ?? null,
    silent?.leaseMs ?? null,
    entry.at,
    encodeJson(entry),
    writeId,
  ]
}

/** Quotas may be infinite. */
function toLimit(quota: number): number {
  return Math.min(quota, Number.MAX_SAFE_INTEGER)
}

/** A number for the lock that a principal's requests take in turn. */
function lockKey(schema: string, { appName, principalId }: AppChatRef): string {
  const text = JSON.stringify(['quota', schema, appName, principalId])
  return createHash('sha256').update(text).digest().readBigInt64BE().toString()
}
